"""Who a client is to brokers, from one set of properties for both clients."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Any

import pytest

from tests.rpc.certificates import LOOPBACK, Authority
from twopc import Job
from twopc.config import RunSettings
from twopc.errors import ConfigurationError
from twopc.kafka.clients.access import check_files, principal
from twopc.kafka.clients.config_file import read_kafka_config
from twopc.kafka.clients.control_config import control_config
from twopc.kafka.clients.tls_context import tls_context
from twopc.kafka.connectors import KafkaConnectors
from twopc.kafka.registry.access import CONFIG_VARIABLE, RegistryAccess
from twopc.kafka.sink import KafkaSink
from twopc.kafka.source import KafkaSource
from twopc.protocol.codec import from_json, to_json

OIDC = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": "hidden",
    "sasl.oauthbearer.token.endpoint.url": "https://127.0.0.1:1/token",
}


def test_connection_settings_reach_the_control_client_and_tuning_does_not() -> None:
    config = control_config(
        {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "me",
            "sasl.password": "secret",
            "linger.ms": "7",
        }
    )
    assert config == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "me",
        "sasl_plain_password": "secret",
    }


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"sasl.oauthbearer.method": "default"}, "sasl.oauthbearer.method must be 'oidc'"),
        ({"sasl.oauthbearer.method": None}, "needs sasl.oauthbearer.method=oidc"),
        ({"sasl.oauthbearer.token.endpoint.url": None}, "needs sasl.oauthbearer.token.endpoint.url"),
        ({"sasl.oauthbearer.client.secret": None}, "needs sasl.oauthbearer.client.secret"),
        ({"sasl.oauthbearer.grant.type": "jwt-bearer"}, "sasl.oauthbearer.grant.type must be 'client_credentials'"),
        ({"enable.sasl.oauthbearer.unsecure.jwt": "true"}, "'enable.sasl.oauthbearer.unsecure.jwt' can't be used"),
    ],
)
def test_a_login_by_token_that_only_one_client_could_make_is_refused_when_the_job_is_built(
    changed: dict[str, Any], named: str
) -> None:
    properties = {name: value for name, value in (OIDC | changed).items() if value is not None}
    with pytest.raises(ConfigurationError, match=re.escape(named)):
        KafkaSource("in", properties=properties)
    with pytest.raises(ConfigurationError, match=re.escape(named)):
        KafkaSink("out", properties=properties)


@pytest.mark.parametrize(
    "name", ["ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "https.ca.location"]
)
def test_a_file_that_is_not_there_is_named_with_its_setting(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"{name} names '/nowhere/x\.pem', which is not there"):
        check_files({name: "/nowhere/x.pem"})


def test_pem_in_the_settings_is_as_good_as_files(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    client = authority.issue("client", LOOPBACK)
    pem = {
        "ssl.ca.pem": authority.file.read_text(),
        "ssl.certificate.pem": client.cert.read_text(),
        "ssl.key.pem": client.key.read_text(),
    }
    files = {
        "ssl.ca.location": str(authority.file),
        "ssl.certificate.location": str(client.cert),
        "ssl.key.location": str(client.key),
    }
    assert tls_context(pem).get_ca_certs() == tls_context(files).get_ca_certs() != []


def test_a_key_that_belongs_to_another_certificate_is_refused_with_the_settings(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    one, other = authority.issue("one", LOOPBACK), authority.issue("other", LOOPBACK)
    with pytest.raises(ConfigurationError, match=r"check ssl\.certificate\.location"):
        tls_context({"ssl.certificate.location": str(one.cert), "ssl.key.pem": other.key.read_text()})
    with pytest.raises(ConfigurationError, match=r"check ssl\.ca\.location"):
        tls_context({"ssl.ca.pem": "no certificate"})


def test_the_name_in_a_certificate_counts_unless_that_is_switched_off() -> None:
    assert tls_context({}).check_hostname
    assert not tls_context({"ssl.endpoint.identification.algorithm": "none"}).check_hostname
    assert tls_context({"ssl.endpoint.identification.algorithm": "none"}).verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("properties", "who"),
    [
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "me"}, "sasl.username 'me'"),
        (OIDC, "sasl.oauthbearer.client.id 'me'"),
        ({"security.protocol": "SSL", "ssl.certificate.pem": "..."}, "the certificate of ssl.certificate.location"),
        ({}, "User:ANONYMOUS"),
    ],
)
def test_who_lacks_an_acl_is_named_by_the_setting_that_says_who_it_is(properties: dict[str, Any], who: str) -> None:
    assert who in principal(properties)
    assert "hidden" not in principal(properties)


def properties_of(job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
    connectors = KafkaConnectors.of(job.definition())
    return connectors.sources["source-1"].properties, connectors.sinks["sink-1"].properties


def test_a_jobs_properties_are_those_of_source_and_sink_where_they_set_none_of_their_own() -> None:
    job = Job("orders", properties={"security.protocol": "SSL", "ssl.ca.location": "ours.pem"})
    source = KafkaSource("in", properties={"fetch.min.bytes": 1})
    job.source(source).sink(KafkaSink("out", properties={"ssl.ca.pem": "THEIRS", "linger.ms": 7}))
    assert properties_of(job) == (
        {"security.protocol": "SSL", "ssl.ca.location": str(Path("ours.pem").absolute()), "fetch.min.bytes": 1},
        {"security.protocol": "SSL", "ssl.ca.pem": "THEIRS", "linger.ms": 7},
    )
    assert source.properties == {"fetch.min.bytes": 1}


def test_files_of_connections_are_those_where_a_job_was_loaded_wherever_it_goes_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, registry = tmp_path / "kafka.properties", tmp_path / "registry.properties"
    for file in (config, registry):
        file.write_text("ssl.ca.location=ca.pem\n")
    (tmp_path / "ca.pem").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(CONFIG_VARIABLE, registry.name)
    tls = {"security.protocol": "SSL", "ssl.ca.location": Path("ca.pem")}
    given = [
        KafkaSource("in", properties=tls).properties,
        KafkaSink("out", properties=tls).properties,
        KafkaSource("in").with_access(tls).properties,
        read_kafka_config(Path(config.name)),
        RegistryAccess.of("https://127.0.0.1", None).properties,
    ]
    assert {each["ssl.ca.location"] for each in given} == {str(tmp_path / "ca.pem")}
    assert KafkaSource("in", properties={"ssl.ca.location": "probe"}).properties == {"ssl.ca.location": "probe"}


def test_what_is_of_a_source_or_of_a_sink_is_no_property_of_a_job() -> None:
    job = Job("orders", properties={"linger.ms": 7})
    with pytest.raises(ConfigurationError, match=r"'linger\.ms' can't be a property of a whole job"):
        job.source(KafkaSource("in")).sink(KafkaSink("out"))


def test_a_login_stays_out_of_what_is_shown_of_settings_and_job() -> None:
    secret = {"sasl.password": "hidden"}
    job = Job("orders", properties=secret)
    job.source(KafkaSource("in")).sink(KafkaSink("out"))
    assert "hidden" not in repr(RunSettings(kafka_properties=secret)) + job.describe() + repr(job.definition())


def test_settings_of_the_run_travel_to_workers_with_its_kafka_properties() -> None:
    settings = RunSettings.resolve(kafka_properties={"sasl.password": "hidden"})
    assert from_json(RunSettings, to_json(settings)) == settings
    with pytest.raises(ConfigurationError, match="kafka_properties: 'x' is not values by name"):
        RunSettings.resolve(kafka_properties="x")
