"""What a manifest tells of the data, the software and the machine; and what it must not tell."""

import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

import privacygames as pg
from privacygames.jobs import DaskExecutor, ProcessExecutor, SerialExecutor
from privacygames_study import Person, Settings, data_digest, provenance, read_manifest, run

PERSON = Person("user 1", pg.Prior(pg.Grid(columns=2, rows=1, width=2.0, height=1.0), [0.75, 0.25]), 4)
SETTINGS = Settings(epsilons=(0.6,), parts=("scenario-1",))


def test_the_digest_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_bytes(b"user,cell,visits\nann,0,3\n")
    digest = data_digest(path)
    assert (digest.files, digest.size) == (1, 25)
    assert digest.sha256 == sha256(path.read_bytes()).hexdigest()


def test_the_digest_of_a_folder_is_that_of_what_sha256sum_lists(tmp_path: Path) -> None:
    for name, text in (("b/2.plt", "two"), ("a.plt", "one")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    listed = "".join(f"{sha256(text).hexdigest()}  {name}\n" for name, text in (("a.plt", b"one"), ("b/2.plt", b"two")))
    digest = data_digest(tmp_path)
    assert (digest.files, digest.size, digest.sha256) == (2, 6, sha256(listed.encode()).hexdigest())
    (tmp_path / "a.plt").rename(tmp_path / "c.plt")
    assert data_digest(tmp_path).sha256 != digest.sha256


def test_a_study_keeps_its_provenance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "counts.csv"
    data.write_text("user,cell,visits\n")
    digest = data_digest(data)
    monkeypatch.setenv("PRIVACYGAMES_THREADS", "1")  # threads are limited; the machine is what it is
    told = {"command": "privacygames study", "digest": digest}
    run([PERSON], SETTINGS, tmp_path / "out", data="tiny", read_as="counts", **told)  # type: ignore[arg-type]
    manifest = read_manifest(tmp_path / "out")
    assert manifest.command == "privacygames study"
    assert (manifest.data_files, manifest.data_bytes, manifest.data_sha256) == (1, digest.size, digest.sha256)
    assert set(manifest.versions) == {"python", *provenance.LIBRARIES}
    assert (manifest.processes, manifest.processor) == (1, provenance.processor_model())
    assert (manifest.cores, manifest.threads) == (os.cpu_count(), 1)
    assert manifest.finished.endswith("+00:00")


def test_workers_tell_how_many_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "available_processors", lambda: 8)
    assert provenance.worker_counts(None) == provenance.worker_counts(SerialExecutor()) == (1, 8)
    assert provenance.worker_counts(ProcessExecutor(4)) == (4, 2)
    assert provenance.worker_counts(ProcessExecutor(16)) == (16, 1)
    assert provenance.worker_counts(DaskExecutor("tcp://10.0.0.1:8786")) == (None, None)


def test_the_processor_is_named_where_the_system_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("processor\t: 0\nmodel name\t: Model 1 @ 2.40GHz\n\nprocessor\t: 1\n")
    monkeypatch.setattr(provenance, "PROCESSORS", path)
    assert provenance.processor_model() == "Model 1 @ 2.40GHz"
    monkeypatch.setattr(provenance, "PROCESSORS", tmp_path / "none")
    assert provenance.processor_model()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The packages in a Git repository of their own."""
    source = tmp_path / "src"
    for package in ("privacygames", "privacygames_study"):
        (source / package).mkdir(parents=True)
        (source / package / "__init__.py").touch()
    monkeypatch.setattr(provenance, "__file__", str(source / "privacygames_study" / "provenance.py"))
    if shutil.which("git") is None:
        pytest.skip("Git is not installed")
    subprocess.run(["git", "init", tmp_path], check=True, capture_output=True)
    return source / "privacygames"


def commit(folder: Path) -> None:
    given = ("-c", "user.name=Nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false")
    for command in (("add", "-A"), (*given, "commit", "--no-verify", "-m", "First")):
        subprocess.run(["git", "-C", folder, *command], check=True, capture_output=True)


def test_the_revision_is_that_of_the_source_and_tells_changes(checkout: Path) -> None:
    commit(checkout)
    found = provenance.revision.__wrapped__()
    assert found is not None
    assert len(found) == 40
    (checkout / "__init__.py").write_text("changed = True\n")
    assert provenance.revision.__wrapped__() == f"{found}+changes"


def test_somebody_elses_repository_is_not_the_source(checkout: Path) -> None:
    """A library installed in a virtual environment that lies, ignored, in another project's checkout."""
    (checkout.parents[1] / ".gitignore").write_text("src\n")
    commit(checkout)
    assert provenance.revision.__wrapped__() is None


def test_without_git_there_is_no_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert provenance.revision.__wrapped__() is None
