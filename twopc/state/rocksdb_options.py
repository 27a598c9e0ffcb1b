"""How RocksDB is opened: sized for several subtasks on a machine, and for reads of keys that are there."""

from __future__ import annotations

from rocksdict import BlockBasedOptions, Cache, DBCompressionType, Options, WriteOptions

MIB = 1024 * 1024
BLOCK_CACHE_BYTES = 64 * MIB
WRITE_BUFFER_BYTES = 32 * MIB
ALL_WRITE_BUFFERS_BYTES = 64 * MIB
"""Over all families of one subtask; several subtasks share a machine."""


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
    # Most keys that are asked for are new or flushed: without a filter each costs a search through the memtable.
    options.set_memtable_prefix_bloom_ratio(0.1)
    options.set_memtable_whole_key_filtering(True)
    options.create_missing_column_families(True)
    return options


def without_log() -> WriteOptions:
    """Return the options of a write that is durable with the next snapshot only."""
    options = WriteOptions()
    setattr(options, "disable_wal", True)  # noqa: B010 - a property, which rocksdict's stub declares as a method
    return options
