"""The outputs folder: bytes, atomicity, damage, and how a run really ended."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from specexp import store
from specexp.errors import UserError
from specexp.rows import CurveRow
from specexp.store import files, provenance

CONFIG = {"gamma": 4, "seed": 0, "figures": None, "rule": {"name": "token"}, "draft": {"name": "noise", "sigma": 0.3}}
ROWS = [
    CurveRow("by_gamma/speedup", 0, "exact", 1.0, None, None),
    CurveRow("by_gamma/speedup", 1, "sampled", 1 / 3, 0.1, 0.1 + 0.2),
]


def put(folder: Path, config: dict | None = None, **record: object) -> Path:
    """A finished run's folder, written in the order in which the program does it."""
    config = config or CONFIG
    store.write_config(folder, config)
    store.write_curves(folder, ROWS)
    store.write_run(folder, store.new_record(store.digest(config), "run") | {"status": "done", "seconds": 1.5} | record)
    store.write_metrics(folder, {"speedup": 2.0, "alpha": 0.9, "speedup_source": "exact"})
    return folder


@pytest.fixture
def dead_pid() -> int:
    """The id of a process that has just ended."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


# --- bytes -----------------------------------------------------------------------------------------------------------


def test_everything_written_is_read_back(tmp_path: Path) -> None:
    folder = store.read_folder(put(tmp_path))
    assert folder.config == CONFIG
    assert folder.curves == ROWS
    assert folder.metrics == {"speedup": 2.0, "alpha": 0.9, "speedup_source": "exact"}
    assert store.status(folder) == "done"


def test_two_runs_of_one_config_differ_in_run_json_alone(tmp_path: Path) -> None:
    backwards = {key: CONFIG[key] for key in reversed(CONFIG)}
    given = ((CONFIG, 1.5), (backwards, 2.5))
    one, two = (put(store.new_run_folder(tmp_path), config, seconds=seconds) for config, seconds in given)
    assert one != two
    differ = {file.name for file in one.iterdir() if file.read_bytes() != (two / file.name).read_bytes()}
    assert differ == {"run.json"}


def test_numbers_are_plain_shortest_and_finite(tmp_path: Path) -> None:
    store.write_metrics(tmp_path, {"b": np.float64(0.1), "a": np.int64(3), "n": float("nan"), "i": np.inf, "z": None})
    assert (tmp_path / "metrics.json").read_bytes() == (
        b'{\n  "a": 3,\n  "b": 0.1,\n  "i": null,\n  "n": null,\n  "z": null\n}\n'
    )
    store.write_curves(tmp_path, [CurveRow("c", 1, "exact", np.float64(1 / 3), float("nan"), None)])
    assert (tmp_path / "curves.csv").read_bytes() == b"curve,x,kind,value,low,high\nc,1,exact,0.3333333333333333,,\n"


@pytest.mark.parametrize("value", [None, 4, 0.1, 1e-13, True, [0.4, 0.6], "token", "a,b\nc", "08"])
def test_a_csv_cell_comes_back_as_it_was(tmp_path: Path, value: object) -> None:
    files.write_bytes(tmp_path / "t.csv", files.csv_bytes(["v"], [[value]]))
    rows = files.read_csv(tmp_path / "t.csv", ["v"])
    assert [files.parse_cell(row["v"]) for row in rows] == [value]


def test_the_digest_knows_numbers_but_neither_order_nor_figures() -> None:
    first = store.digest(CONFIG)
    assert first == "0a1795c8f450"  # pinned: folders of earlier versions are found by it
    assert store.digest({key: CONFIG[key] for key in reversed(CONFIG)} | {"figures": "all"}) == first
    assert store.digest(CONFIG | {"gamma": 5}) != first
    assert store.digest(CONFIG | {"draft": {"name": "noise", "sigma": 0.31}}) != first
    with pytest.raises(UserError, match="finite"):
        store.digest({"gamma": float("nan")})


# --- places ----------------------------------------------------------------------------------------------------------


def test_the_root_is_absolute_and_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPECEXP_OUTPUTS", raising=False)
    assert store.outputs_root() == tmp_path / "outputs"
    monkeypatch.setenv("SPECEXP_OUTPUTS", "a/b")
    assert store.outputs_root() == tmp_path / "a" / "b"
    assert list(tmp_path.iterdir()) == []


def test_a_root_under_a_file_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for root in ("file", "file/below"):
        monkeypatch.setenv("SPECEXP_OUTPUTS", str(tmp_path / root))
        with pytest.raises(UserError, match=r"SPECEXP_OUTPUTS=.*is a file") as caught:
            store.outputs_root()
        assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="SPECEXP_OUTPUTS"):
        store.new_run_folder(tmp_path / "file")


def test_an_unwritable_root_is_refused(unwritable: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECEXP_OUTPUTS", str(unwritable / "outputs"))
    with pytest.raises(UserError, match=r"SPECEXP_OUTPUTS=.*cannot be written"):
        store.outputs_root()
    with pytest.raises(UserError, match="SPECEXP_OUTPUTS"):
        store.new_run_folder(unwritable / "outputs")


@pytest.fixture
def unwritable(tmp_path: Path) -> Path:
    """A folder that nobody may write to: for root, one of the kernel's own."""
    if os.geteuid() == 0:
        return Path("/proc/self")
    tmp_path.chmod(0o500)
    return tmp_path


def test_runs_of_one_second_get_their_own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = iter(["a", "a", "a", "b"])
    monkeypatch.setattr("specexp.store.folders.secrets.token_hex", lambda _: next(taken))
    first = store.new_run_folder(tmp_path)
    while True:  # the second may end between the two
        second = store.new_run_folder(tmp_path)
        if second.name.endswith("b") or first.name[:-1] != second.name[:-1]:
            break
    assert first != second


@pytest.mark.parametrize("name", ["a/b", "", ".", "..", "a b", "é", "x" * 201, "a\n"])
def test_a_sweep_name_that_names_no_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="sweep="):
        store.cell_folder(tmp_path, name, "0" * 12)
    assert list(tmp_path.iterdir()) == []


def test_a_cell_run_anew_starts_empty_metrics_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put(store.cell_folder(tmp_path, "s", "0" * 12))
    for name in ("by_gamma.png", "traceback.txt", "notes.md"):
        store.write_text(folder, name, "old")
    gone: list[str] = []
    unlink = Path.unlink
    monkeypatch.setattr(Path, "unlink", lambda self, **more: (gone.append(self.name), unlink(self, **more))[1])
    assert store.cell_folder(tmp_path, "s", "0" * 12) == folder
    assert [file.name for file in folder.iterdir()] == ["notes.md"]  # a person's own file stays
    assert gone[0] == "metrics.json"


def test_a_cell_that_another_process_works_on_is_left_alone(tmp_path: Path, dead_pid: int) -> None:
    folder = store.cell_folder(tmp_path, "s", "0" * 12)
    put(folder, status="running", pid=os.getppid())
    with pytest.raises(UserError, match="sweep=s: another process"):
        store.cell_folder(tmp_path, "s", "0" * 12)
    assert (folder / "metrics.json").exists()
    put(folder, status="running", pid=dead_pid)
    store.cell_folder(tmp_path, "s", "0" * 12)
    assert not (folder / "metrics.json").exists()


def test_scan_finds_runs_cells_and_sweeps(tmp_path: Path) -> None:
    assert store.scan(tmp_path / "none") == ([], [], [])
    run, cell = put(store.new_run_folder(tmp_path)), put(store.cell_folder(tmp_path, "s", "0" * 12))
    store.write_sweep(cell.parent, {}, [])
    (tmp_path / "runs" / "stray").mkdir()
    assert store.scan(tmp_path) == ([run], [cell], [cell.parent])
    assert {store.root_of(folder) for folder in (run, cell, cell.parent)} == {tmp_path}


# --- whole or not at all ---------------------------------------------------------------------------------------------

TOO_BIG = """
import resource, sys
from pathlib import Path
from specexp import store
from specexp.errors import UserError
folder = Path(sys.argv[1])
store.write_text(folder, "metrics.json", "old")
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    store.write_text(folder, "metrics.json", "new" * 100)
except UserError as error:
    print(error)
"""


def test_a_write_that_does_not_fit_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", TOO_BIG, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"{tmp_path}/metrics.json: no space left to write it; free some, or set SPECEXP_OUTPUTS to a folder with room\n"
    )
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("metrics.json", "old")]


def test_a_full_disk_leaves_no_half_written_file(full_disk: Path) -> None:
    with pytest.raises(UserError, match=r"metrics\.json: no space left.*SPECEXP_OUTPUTS"):
        store.write_text(full_disk, "metrics.json", "x" * 100_000)
    assert [file.name for file in full_disk.iterdir()] == []
    store.write_text(full_disk, "metrics.json", "x")  # and what fits is written


@pytest.fixture
def full_disk(tmp_path: Path):
    """A file system of 64 kB, where this process may mount one."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("may not mount a file system; the limit on file sizes above shows the same")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("specexp.store.files.os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.write_text(tmp_path, "metrics.json", "new")
    assert list(tmp_path.iterdir()) == []


# --- how it ended ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recorded", ["failed", "skipped", "killed"])
def test_an_end_that_was_recorded_is_believed(tmp_path: Path, recorded: str) -> None:
    (put(tmp_path, status=recorded) / "metrics.json").unlink()
    assert store.status(store.read_folder(tmp_path)) == recorded


def test_running_is_believed_while_its_process_lives(tmp_path: Path, dead_pid: int) -> None:
    def ended(**record: object) -> str:
        (put(tmp_path, **{"status": "running", **record}) / "metrics.json").unlink()
        return store.status(store.read_folder(tmp_path))

    assert ended(pid=os.getpid()) == "running"
    assert ended(pid=dead_pid) == "killed"
    assert ended(pid=dead_pid, host="elsewhere") == "running"  # nobody can tell
    assert ended(pid=os.getpid(), started="2020-01-01T00:00:00+00:00") == "killed"  # a namesake, born later
    assert ended(pid=None) == "killed"
    assert ended(pid=dead_pid, status="done") == "killed"  # before its last file


def test_metrics_json_makes_a_run_done(tmp_path: Path, dead_pid: int) -> None:
    assert store.status(store.read_folder(put(tmp_path, status="running", pid=dead_pid))) == "done"


# --- other versions, and damage --------------------------------------------------------------------------------------


def test_folders_of_other_versions_are_read(tmp_path: Path) -> None:
    put(tmp_path)
    for name in ("run.json", "metrics.json"):
        content = json.loads((tmp_path / name).read_text()) | {"unheard_of": [1]}
        (tmp_path / name).write_text(json.dumps({k: v for k, v in content.items() if k not in ("host", "versions")}))
    (tmp_path / "curves.csv").write_text("new,curve,x,kind,value,low,high\n1,c,2.0,exact,3.0,,\n")
    folder = store.read_folder(tmp_path)
    assert folder.run["unheard_of"] == folder.metrics["unheard_of"] == [1]
    assert folder.curves == [CurveRow("c", 2.0, "exact", 3.0, None, None)]


DAMAGE = {
    "run.json": ["", "{", "[]", '{"digest": "0"}', b"\xff"],
    "metrics.json": ['{"speedup": 2.', "3"],
    "config.yaml": ["", "a: [", "- 1", b"\xff"],
    "curves.csv": [
        "",
        "curve,x\n",
        "curve,x,kind,value,low,high\nc,1,exact\n",
        "curve,x,kind,value,low,high\nc,x,e,1,,\n",
    ],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in DAMAGE.items() for text in texts])
def test_a_damaged_file_is_named_in_one_line(tmp_path: Path, name: str, text: str | bytes) -> None:
    (put(tmp_path) / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError) as caught:
        store.read_folder(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / name}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["run.json", "config.yaml"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    (put(tmp_path) / name).unlink()
    with pytest.raises(UserError, match=name):
        store.read_folder(tmp_path)


# --- sweeps ----------------------------------------------------------------------------------------------------------


def sweep_of(root: Path, configs: list[dict], swept: dict[str, list]) -> Path:
    for config in configs[:-1]:
        put(store.cell_folder(root, "s", store.digest(config)), config)
    folder = store.sweep_folder(root, "s")
    store.write_run(folder, store.new_record("0" * 12, "sweep", "s"))
    store.write_sweep(folder, swept, configs)
    return folder


def test_a_sweep_is_one_table_in_its_own_order(tmp_path: Path) -> None:
    configs = [CONFIG | {"gamma": gamma, "rule": {"name": rule}} for gamma in (8, 2) for rule in ("token", "lenient")]
    folder = sweep_of(tmp_path, configs, {"gamma": [8, 2], "rule": ["token", "lenient"]})
    ids = [store.digest(config) for config in configs]
    assert (folder / "sweep.csv").read_text().splitlines() == [
        "cell,status,reason,gamma,rule,alpha,speedup,speedup_source",
        *(
            f"{ids[i]},done,,{g},{r},0.9,2.0,exact"
            for i, (g, r) in enumerate([(8, "token"), (8, "lenient"), (2, "token")])
        ),
        f"{ids[3]},killed,not started,2,lenient,,,",
    ]
    sweep = store.read_sweep(folder)
    assert sweep.content["cells"] == ids
    assert sweep.content["swept"] == {"gamma": [8, 2], "rule": ["token", "lenient"]}
    assert sweep.content["fixed"] == {"seed": 0, "figures": None, "draft.name": "noise", "draft.sigma": 0.3}
    assert sweep.swept == ["gamma", "rule"]
    assert sweep.rows[0] == {
        "cell": ids[0], "status": "done", "reason": None, "gamma": 8, "rule": "token", "alpha": 0.9, "speedup": 2.0,
        "speedup_source": "exact",
    }  # fmt: skip


def test_a_sweep_run_twice_has_the_same_bytes(tmp_path: Path) -> None:
    configs = [CONFIG | {"gamma": gamma} for gamma in (1, 2, 4)]
    one, two = (sweep_of(tmp_path / place, configs, {"gamma": [1, 2, 4]}) for place in ("one", "two"))
    for name in ("sweep.json", "sweep.csv"):
        assert (one / name).read_bytes() == (two / name).read_bytes()


def test_a_killed_sweep_is_refreshed_from_its_cells(tmp_path: Path) -> None:
    configs = [CONFIG | {"gamma": gamma} for gamma in (1, 2, 4)]
    folder = store.begin_sweep(tmp_path, "s", store.new_record("0" * 12, "sweep", "s"))
    store.write_sweep(folder, {"gamma": [1, 2, 4]}, configs)
    assert {row["reason"] for row in store.read_sweep(folder).rows} == {"not started"}
    put(store.cell_folder(tmp_path, "s", store.digest(configs[1])), configs[1])
    store.refresh_sweep(folder)
    refreshed = (folder / "sweep.csv").read_bytes()
    assert [row["status"] for row in store.read_sweep(folder).rows] == ["killed", "done", "killed"]
    store.write_sweep(folder, {"gamma": [1, 2, 4]}, configs)
    assert (folder / "sweep.csv").read_bytes() == refreshed
    (folder / store.digest(configs[1]) / "run.json").unlink()
    store.refresh_sweep(folder)  # its numbers are nowhere else now
    assert (folder / "sweep.csv").read_bytes() == refreshed


def test_a_sweep_that_another_process_works_on_is_left_alone(tmp_path: Path, dead_pid: int) -> None:
    def begins(pid: int) -> Path:
        folder = store.begin_sweep(tmp_path, "s", store.new_record("0" * 12, "sweep", "s") | {"pid": pid})
        store.write_text(folder, "speedup.png", "drawn")
        return folder

    begins(dead_pid)
    folder = begins(os.getppid())
    with pytest.raises(UserError, match="sweep=s: another process"):
        begins(os.getpid())
    assert (folder / "speedup.png").exists()


def test_a_swept_key_hides_a_metric_of_its_name(tmp_path: Path) -> None:
    folder = store.cell_folder(tmp_path, "s", store.digest(CONFIG | {"steps": 10}))
    store.write_metrics(put(folder, CONFIG | {"steps": 10}), {"steps": 12})
    store.write_sweep(folder.parent, {"steps": [10]}, [CONFIG | {"steps": 10}])
    assert (folder.parent / "sweep.csv").read_text() == f"cell,status,reason,steps\n{folder.name},done,,10\n"


def test_a_digest_of_digits_alone_stays_a_text(tmp_path: Path) -> None:
    store.write_run(tmp_path, store.new_record("0" * 12, "sweep", "s"))
    store.write_text(tmp_path, "sweep.json", '{"name": "s", "swept": {}, "cells": []}')
    store.write_text(tmp_path, "sweep.csv", "cell,status,reason,x\n000000000012,failed,1e5,1e5\n")
    assert store.read_sweep(tmp_path).rows == [{"cell": "000000000012", "status": "failed", "reason": "1e5", "x": 1e5}]


# --- where it came from ----------------------------------------------------------------------------------------------


def test_git_facts_are_those_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *identity, *words], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    package = tmp_path / "specexp" / "__init__.py"
    package.parent.mkdir()
    package.touch()
    monkeypatch.setattr("specexp.store.provenance.specexp.__file__", str(package))
    facts = provenance.git_facts.__wrapped__
    assert facts() is None  # an installed package
    git("init", "-b", "trunk")
    assert facts() == {"commit": None, "branch": "trunk", "dirty": True}
    git("add", ".")
    git("commit", "-m", "first")
    assert facts() == {"commit": git("rev-parse", "HEAD"), "branch": "trunk", "dirty": False}
    (tmp_path / "new_rule.py").touch()
    git("checkout", "--detach")
    assert facts() == {"commit": git("rev-parse", "HEAD"), "branch": None, "dirty": True}
    monkeypatch.setenv("PATH", "")
    assert facts() is None  # no git


def test_versions_name_what_the_numbers_stand_on() -> None:
    assert {"specexp", "python", "numpy", "hydra-core", "mlflow"} <= set(provenance.versions())
    assert all(provenance.versions().values())
