from __future__ import annotations

import pickle
from typing import Any

import pytest

from twopc.config import NO_TIMEOUT_MS, RunSettings
from twopc.errors import ConfigurationError
from twopc.kafka.clients.client_config import consumer_config, producer_config, transactional_config
from twopc.kafka.input.startup_modes import StartingOffsets
from twopc.kafka.sink import DeliveryGuarantee, KafkaSink
from twopc.kafka.source import KafkaSource
from twopc.kafka.topics.preflight import bootstrap_servers_of, checked_timeout_ms, restart_budget_ms


@pytest.mark.parametrize(
    "name",
    [
        "transactional.id",
        "transaction.timeout.ms",
        "enable.idempotence",
        "acks",
        "bootstrap.servers",
        "delivery.report.only.error",
        "plugin.library.paths",
    ],
)
def test_a_sink_refuses_a_property_that_would_break_its_promise(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"KafkaSink can't take the property '{name}': "):
        KafkaSink("out", properties={name: "x"})


@pytest.mark.parametrize(
    "name",
    [
        "group.id",
        "isolation.level",
        "enable.auto.commit",
        "auto.offset.reset",
        "bootstrap.servers",
        "plugin.library.paths",
    ],
)
def test_a_source_refuses_a_property_that_would_break_its_promise(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"KafkaSource can't take the property '{name}': "):
        KafkaSource("in", properties={name: "x"})


def test_a_users_property_overrides_the_tuning() -> None:
    assert producer_config("b:1", {"linger.ms": "50"})["linger.ms"] == "50"
    assert consumer_config("b:1", "g", {"fetch.min.bytes": "1"})["fetch.min.bytes"] == "1"


def test_no_message_outlives_its_transaction() -> None:
    config = transactional_config(producer_config("b:1", {}), "id", 60_000)
    assert config["message.timeout.ms"] == 60_000


def test_the_longest_timeout_is_one_that_librdkafka_can_compute_with() -> None:
    config = transactional_config(producer_config("b:1", {}), "id", NO_TIMEOUT_MS)
    assert config["transaction.timeout.ms"] + 100 == 2**31 - 1
    assert config["socket.timeout.ms"] == 60_000


def test_a_transaction_without_a_timeout_still_has_a_message_timeout() -> None:
    config = transactional_config(producer_config("b:1", {}), "id", NO_TIMEOUT_MS)
    assert config["message.timeout.ms"] == 300_000


def test_a_connection_setting_that_the_control_client_lacks_is_refused_when_the_job_is_built() -> None:
    with pytest.raises(ConfigurationError, match=r"'sasl\.oauthbearer\.config' can't be used"):
        KafkaSink("out", properties={"sasl.oauthbearer.config": "x"})


def test_a_security_protocol_that_is_none_is_refused_and_never_taken_for_no_security() -> None:
    with pytest.raises(ConfigurationError, match=r"security\.protocol must be one of .*SASL_SSL, but is 'sasl-ssl'"):
        KafkaSource("in", properties={"security.protocol": "sasl-ssl"})


def test_a_description_shows_no_properties() -> None:
    sink = KafkaSink("out", properties={"sasl.password": "secret"})
    source = KafkaSource("in", properties={"sasl.password": "secret"})
    assert "secret" not in repr(sink.describe()) + repr(source.describe())


def test_descriptions_survive_pickling() -> None:
    sink = pickle.loads(pickle.dumps(KafkaSink("out", delivery_guarantee="at_least_once")))
    source = pickle.loads(pickle.dumps(KafkaSource(["a", "b"], start=StartingOffsets.timestamp(5))))
    assert (sink.topic, sink.delivery_guarantee) == ("out", DeliveryGuarantee.AT_LEAST_ONCE)
    assert (source.topics, source.start) == (("a", "b"), StartingOffsets.timestamp(5))


def test_an_unknown_guarantee_is_refused_with_the_choices() -> None:
    with pytest.raises(ConfigurationError, match="'exactly_once', 'at_least_once', 'none', not 'twice'"):
        KafkaSink("out", delivery_guarantee="twice")


@pytest.mark.parametrize("topics", ["", [], ["a", ""], 5, None, [5]])
def test_a_source_without_a_topic_is_refused(topics: Any) -> None:
    with pytest.raises(ConfigurationError, match="KafkaSource needs the name of a topic"):
        KafkaSource(topics)


def test_negative_offsets_and_timestamps_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"in\[0\]: -1"):
        StartingOffsets.specific({("in", 0): -1})
    with pytest.raises(ConfigurationError, match="-5"):
        StartingOffsets.timestamp(-5)


def test_a_run_without_brokers_is_told_which_setting_to_give() -> None:
    with pytest.raises(ConfigurationError, match="--bootstrap-servers"):
        bootstrap_servers_of(None, RunSettings())


def test_by_default_the_timeout_is_the_longest_that_the_brokers_allow() -> None:
    assert checked_timeout_ms(RunSettings(), 900_000) == 900_000
    assert checked_timeout_ms(RunSettings(), NO_TIMEOUT_MS) == NO_TIMEOUT_MS


def test_a_timeout_that_does_not_cover_a_restart_is_refused_naming_every_setting() -> None:
    settings = RunSettings(transaction_timeout_ms=60_000)
    with pytest.raises(ConfigurationError) as refused:
        checked_timeout_ms(settings, 900_000)
    names = ("transaction_timeout_ms", "transaction.max.timeout.ms", "checkpoint_interval_ms", "checkpoint_timeout_ms")
    assert all(name in str(refused.value) for name in names)


def test_a_timeout_longer_than_the_brokers_allow_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"at most transaction\.max\.timeout\.ms=900000"):
        checked_timeout_ms(RunSettings(transaction_timeout_ms=1_000_000), 900_000)


def test_a_job_that_is_never_restarted_by_itself_needs_no_time_for_restarts() -> None:
    never, none = RunSettings(restart_strategy="none"), RunSettings(restart_attempts=0)
    assert restart_budget_ms(never) == restart_budget_ms(none)


def test_a_fixed_delay_does_not_grow_in_the_restart_budget() -> None:
    fixed = RunSettings(restart_strategy="fixed-delay", restart_attempts=10)
    assert restart_budget_ms(fixed) < restart_budget_ms(RunSettings(restart_attempts=10))


def test_the_restart_budget_grows_with_the_attempts() -> None:
    few, many = RunSettings(restart_attempts=1), RunSettings(restart_attempts=9)
    assert restart_budget_ms(many) > restart_budget_ms(few)


def test_a_producer_keeps_the_brokers_that_it_knows_when_the_last_connection_breaks() -> None:
    assert producer_config("b:1", {})["metadata.recovery.strategy"] == "none"


def test_a_consumer_may_bootstrap_anew() -> None:
    assert "metadata.recovery.strategy" not in consumer_config("b:1", "group", {})
