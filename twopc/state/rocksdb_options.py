"""The options of RocksDB: sized for several subtasks on a machine, and for reads of keys that are there."""

from __future__ import annotations

import logging

from rocksdict import BlockBasedOptions, Cache, DBCompressionType, Options, Rdict, WriteOptions

log = logging.getLogger(__name__)

MIB = 1024 * 1024
BLOCK_CACHE_BYTES = 64 * MIB
WRITE_BUFFER_BYTES = 32 * MIB
ALL_WRITE_BUFFERS_BYTES = 64 * MIB
"""Over all families of one subtask; several subtasks share a machine."""
ASKED_BEFORE_FILTER = 1_000
"""How many keys are asked for without a filter: where all states are at hand, hardly any are, for hours."""
FILTER_OF_MEMTABLE = "0.1"
"""The size of the filter, as a part of the memtable."""


def database_options() -> Options:
    """Return the options of a database and of each of its families."""
    table = BlockBasedOptions()
    table.set_block_cache(Cache(BLOCK_CACHE_BYTES))
    # Filters and indexes stay outside the cache, at about 1.5 bytes a key: inside, they drive each other out as soon as
    # the state outgrows it, and reads become ten times slower.
    table.set_bloom_filter(10, False)
    options = Options(raw_mode=True)
    options.set_block_based_table_factory(table)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_write_buffer_size(WRITE_BUFFER_BYTES)
    options.set_db_write_buffer_size(ALL_WRITE_BUFFERS_BYTES)
    # A checkpoint a second is a small file a second: to merge eight at a time takes half the work of four.
    options.set_level_zero_file_num_compaction_trigger(8)
    options.set_max_background_jobs(2)
    options.set_max_open_files(500)
    options.set_max_manifest_file_size(MIB)
    options.set_keep_log_file_num(1)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    options.set_paranoid_checks(True)
    options.set_atomic_flush(True)
    # Of the filter that `MemtableFilter` begins.
    options.set_memtable_whole_key_filtering(True)
    options.create_missing_column_families(True)
    return options


def without_log() -> WriteOptions:
    """Return the options of a write that is durable with the next snapshot only."""
    options = WriteOptions()
    setattr(options, "disable_wal", True)  # noqa: B010 - a property, which rocksdict's stub declares as a method
    return options


class MemtableFilter:
    """The filter in front of a family's memtable, from the next memtable on after keys were asked for.

    Most keys that are asked for are new or flushed: without a filter each costs a search through the memtable. But all
    writes have to feed it, for a fifth of what they cost, which is for nothing where no key is asked for.
    """

    def __init__(self, family: Rdict) -> None:
        self._family = family
        self._left = ASKED_BEFORE_FILTER

    def asked(self, keys: int) -> None:
        """So many keys are asked for now."""
        if self._left <= 0:
            return
        self._left -= keys
        if self._left <= 0:
            try:
                self._family.set_options({"memtable_prefix_bloom_size_ratio": FILTER_OF_MEMTABLE})
            except Exception as error:  # noqa: BLE001 - rocksdict raises nothing else
                # It is as right without, and no slower than it was; a database that is open to be looked at has none.
                log.info("no filter for RocksDB's memtables: %s", error)
