"""The examples of many gateways with one state: what of them can be tried without containers and a running systemd."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
import typer
import yaml
from psycopg.conninfo import conninfo_to_dict

from gatewright.cli.main import NAMES, main
from gatewright.cli.table import command_line
from tests.support.checkout import ROOT
from tests.support.postgres import Cluster, programs

FLEET = ROOT / "packaging" / "fleet"
UNIT = FLEET / "gatewright-fleet@.service"
OWNERS, PASSWORD = "secret of the owner", "quo'te \\ and `space`"


@pytest.fixture
def compose() -> dict[str, Any]:
    return yaml.safe_load((FLEET / "compose.yaml").read_text("utf-8"))


def unit_lines(key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", UNIT.read_text("utf-8"), re.MULTILINE)


def unit_environment(**specifiers: str) -> dict[str, str]:
    words = [word for line in unit_lines("Environment") for word in shlex.split(line)]
    for letter, value in specifiers.items():
        words = [word.replace(f"%{letter}", value) for word in words]
    return dict(word.split("=", 1) for word in words)


def test_gateways_start_when_the_database_answers_and_holds_a_state(compose: dict[str, Any]) -> None:
    services = compose["services"]

    assert set(services) == {"database", "state", "gateway"}
    assert services["state"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert services["gateway"]["depends_on"] == {"state": {"condition": "service_completed_successfully"}}
    for name in ("database", "gateway"):
        assert services[name]["healthcheck"]["test"][0] == "CMD"
        assert services[name]["restart"] == "unless-stopped"
    assert services["state"]["image"] == services["gateway"]["image"]


def test_gateways_alone_are_reached_and_on_loopback_alone(compose: dict[str, Any]) -> None:
    services = compose["services"]
    (ports,) = services["gateway"]["ports"]
    found = re.fullmatch(r"127\.0\.0\.1:(\d+)-(\d+):8765", ports)

    assert [name for name in services if "ports" in services[name]] == ["gateway"]
    assert found
    assert int(found[2]) - int(found[1]) + 1 == services["gateway"]["deploy"]["replicas"] > 1
    assert "8765" in services["gateway"]["command"]


def test_what_a_gateway_runs_is_a_command_of_the_program(compose: dict[str, Any]) -> None:
    words = compose["services"]["gateway"]["command"]
    command = command_line(NAMES).commands[words[0]]

    command.make_context(words[0], words[1:], parent=typer.Context(command))


def test_no_value_is_a_password_and_each_program_has_its_own(compose: dict[str, Any]) -> None:
    services, secrets = compose["services"], compose["secrets"]
    states = {name: one["environment"] for name, one in services.items() if "GATEWRIGHT_STATE" in one["environment"]}

    assert set(states) == {"state", "gateway"}
    for name, environment in states.items():
        assert conninfo_to_dict(environment["GATEWRIGHT_STATE"]) == {"service": "gatewright"}
        assert services[name]["secrets"] == [Path(environment["PGSERVICEFILE"]).name]
    assert states["state"]["PGSERVICEFILE"] != states["gateway"]["PGSERVICEFILE"]
    assert [key for one in services.values() for key in one["environment"] if "PASS" in key] == [
        "POSTGRES_PASSWORD_FILE"
    ]
    assert {name for one in services.values() for name in one["secrets"]} == set(secrets)
    assert {place["file"] for place in secrets.values()} == {f"secrets/{name}" for name in secrets}
    for one in services.values():
        kept = [volume.partition(":")[0] for volume in one.get("volumes", ())]
        assert not [name for name in kept if not name.startswith(".") and name not in compose["volumes"]]


def test_the_image_holds_the_client_of_the_database() -> None:
    assert '"/source[mcp,fleet]"' in (ROOT / "packaging" / "container" / "Containerfile").read_text("utf-8")


@pytest.fixture
def first_start(own_cluster: Cluster, tmp_path: Path) -> Cluster:
    """A database as its container has it after the first start, with the service files of both roles beside it."""
    with psycopg.connect(own_cluster.url(), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE owner SUPERUSER LOGIN PASSWORD '{OWNERS}'")
        connection.execute("CREATE DATABASE gatewright OWNER owner")
    for role, password in (("owner", OWNERS), ("gateway", PASSWORD)):
        (tmp_path / f"{role}-password").write_text(password)
        (tmp_path / f"{role}.conf").write_text(
            f"[gatewright]\nhost={own_cluster.folder}\ndbname=gatewright\nuser={role}\npassword={password}\n"
        )
    environment = {
        "PATH": f"{programs()}:{os.defpath}",
        "SECRETS": str(tmp_path),
        "PGHOST": str(own_cluster.folder),
        "POSTGRES_USER": "owner",
        "POSTGRES_DB": "gatewright",
    }
    subprocess.run([FLEET / "roles.sh"], env=environment, check=True)
    # from now on roles need their passwords
    (own_cluster.folder / "data" / "pg_hba.conf").write_text("local all all scram-sha-256\n")
    own_cluster.stop()
    own_cluster.start()
    return own_cluster


def test_the_role_of_gateways_has_the_password_of_its_file_and_no_right(first_start: Cluster) -> None:
    url = first_start.url("gatewright", "gateway")
    with psycopg.connect(url, password=PASSWORD) as connection:
        found = connection.execute(
            "SELECT rolsuper, rolcreaterole, rolcreatedb FROM pg_roles WHERE rolname = 'gateway'"
        )
        assert found.fetchone() == (False, False, False)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(url, password=OWNERS)


def test_the_service_state_makes_it_once_and_gateways_have_their_duties(
    first_start: Cluster,
    compose: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def become(service: str) -> None:
        for name, value in compose["services"][service]["environment"].items():
            monkeypatch.setenv(name, value.replace("/run/secrets", str(tmp_path)))

    become("gateway")
    assert main(["state", "init"]) == 2
    become("state")
    for _ in range(2):  # containers start again and again
        assert main(compose["services"]["state"]["command"]) == 0
    said = capsys.readouterr().out
    become("gateway")

    assert "gateway of main: gateway, read\n" in said
    assert "owner of main: answer, publish, read" in said
    assert main(["state", "status"]) == 0
    assert "version" in capsys.readouterr().out


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    text = UNIT.read_text("utf-8")
    copy = tmp_path / UNIT.name
    copy.write_text(text.replace("/usr/bin/gatewright ", "/bin/true "), "utf-8")

    assert "ExecStart=/usr/bin/gatewright serve %f --transport http " in text
    if program is not None:
        instance = copy.with_name("gatewright-fleet@srv-work.service")
        done = subprocess.run([program, "verify", "--man=no", instance], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_reaches_the_database_by_a_file_that_it_is_handed(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed, place = unit_lines("LoadCredential")[0].split(":")
    known = conninfo_to_dict(database)
    (tmp_path / handed).write_text(
        f"[gatewright]\nhost={known['host']}\ndbname={known['dbname']}\nuser=postgres\npassword=unasked\n"
    )
    environment = unit_environment(d=str(tmp_path), S="/var/lib")
    monkeypatch.setenv("PGSERVICEFILE", environment["PGSERVICEFILE"])

    with psycopg.connect(environment["GATEWRIGHT_STATE"]) as connection:
        assert connection.info.dbname == known["dbname"]
    assert place == "/etc/gatewright/state.conf"
    assert set(environment) == {"GATEWRIGHT_STATE", "PGSERVICEFILE", "GATEWRIGHT_KEYS", "GATEWRIGHT_SERVE"}
