"""A damaged checkpoint: a run falls back on the newest whole one before it, with one warning, or says why
it cannot; what crashes have left is cleared away."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from train_support import Finished, module_needs, start

module_needs("torch", "numpy", "sklearn")

from jobgen.train import atomic, checkpoints  # noqa: E402
from jobgen.train.checkpoints import directory  # noqa: E402
from jobgen.train.errors import BadInput, CannotSave, CommonMistake  # noqa: E402

RUN = ["--engine", "ddp", "--epochs", "1", "--save-every", "5", "--log-every", "5"]  # 23 steps
LAST = "step-000023"
SELDOM = ["--save-every", "1", "--log-every", "100"]


def checkpoint(place: Path, step: int, content: bytes = b"weights") -> Path:
    """The smallest that there is."""
    folder = place / f"step-{step:06d}"
    folder.mkdir(parents=True)
    (folder / "model.pt").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    record = {"format": 1, "files": {"model.pt": {"bytes": len(content), "sha256": digest}}}
    atomic.write_json(folder / "checkpoint.json", record)
    atomic.write_text(place / "latest", folder.name + "\n")
    return folder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for step in (2, 4, 6):
        checkpoint(tmp_path, step)
    return tmp_path


def test_a_checkpoint_whose_files_are_not_there_removes_no_other(place: Path) -> None:
    """As those of another host, on a file system that the hosts do not share."""
    from jobgen.train import device, report
    from jobgen.train.checkpoints.publication import Publisher
    from torch import distributed

    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        run = report.Run({"JOBGEN_RUN_DIR": str(place)}, report.Clock(), 0)
        publisher = Publisher()
        publisher.device, publisher.run = device.Device("cpu", 0), run
        publisher.directory, publisher.latest = place, "step-000006"
        draft = publisher.begin("step-000008")
        (draft / "here.pt").write_bytes(b"1234")
        files = {name: {"bytes": 4, "sha256": ""} for name in ("here.pt", "elsewhere.pt")}
        with pytest.raises(
            CannotSave, match="elsewhere.pt cannot be read.*; step-000006 is intact and is kept"
        ):
            publisher.finish(draft, "step-000008", {"format": 1, "files": files}, 8, keep=1)
    finally:
        distributed.destroy_process_group()
    assert (place / "latest").read_text() == "step-000006\n"
    assert sorted(each.name for each in place.glob("*step*")) == ["step-000002", "step-000004", "step-000006"]


def test_an_asynchronous_save_is_read_again_before_it_is_the_latest(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte that changes on its way to the disk keeps the checkpoint before, also with --keep 1."""
    from crashes import Engine
    from jobgen.train import device, report
    from jobgen.train.checkpoints import save, storage
    from torch import distributed

    write = storage.Snapshot.write

    def damaged(snapshot: storage.Snapshot, writer: storage.FileWriter) -> None:
        write(snapshot, writer)
        [file] = place.glob(".*.writing/model.pt")
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    (place / "latest").write_text("step-000006\n")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        facts = {"world_size": 1, "settings": {"keep": 1, "async_save": True}}
        run = report.Run({"JOBGEN_RUN_DIR": str(place)}, report.Clock(), 0)
        engine, mine = Engine(), device.Device("cpu", 0)
        saver = save.Saver(engine, mine, run, place, facts, checkpoints.Progress(), latest="step-000006")  # type: ignore[arg-type]
        with monkeypatch.context() as patch:
            patch.setattr(storage.Snapshot, "write", damaged)
            saver.save(checkpoints.Progress(1, 8, 1))
            with pytest.raises(
                CannotSave, match="model.pt is damaged: .*; step-000006 is intact and is kept"
            ):
                saver.wait()
        assert (place / "latest").read_text() == "step-000006\n"
        assert sorted(each.name for each in place.glob("*step*")) == [
            "step-000002",
            "step-000004",
            "step-000006",
        ]
        saver.save(checkpoints.Progress(1, 9, 2))
        saver.wait()
        assert checkpoints.ids(place) == ["step-000009"]
    finally:
        distributed.destroy_process_group()


def test_an_older_checkpoint_is_removed_only_for_an_intact_one(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A save without a thread is read again before --keep 1 removes the checkpoint before it."""
    from crashes import Engine
    from jobgen.train import device, report
    from jobgen.train.checkpoints import publication, save
    from torch import distributed

    replace = publication.os.replace

    def damaged(draft: Path, final: Path) -> None:
        replace(draft, final)
        if final.name == "step-000008":
            content = (final / "model.pt").read_bytes()
            (final / "model.pt").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        run = report.Run({"JOBGEN_RUN_DIR": str(place)}, report.Clock(), 0)
        facts = {"world_size": 1, "settings": {"keep": 1}}
        engine, mine = Engine(), device.Device("cpu", 0)
        saver = save.Saver(engine, mine, run, place, facts, checkpoints.Progress(), latest="step-000006")  # type: ignore[arg-type]
        before = checkpoints.ids(place)
        monkeypatch.setattr(publication.os, "replace", damaged)
        saver.save(checkpoints.Progress(1, 8, 1))
        saver.wait()
        assert checkpoints.ids(place) == [*before, "step-000008"]
        assert "model.pt is damaged: its SHA-256" in capsys.readouterr().err
        saver.save(checkpoints.Progress(1, 9, 2))
        saver.wait()
        assert checkpoints.ids(place) == ["step-000009"]
    finally:
        distributed.destroy_process_group()


def names(paths: tuple[Path, ...]) -> list[str]:
    return [path.name for path in paths]


def test_the_latest_comes_first_and_then_those_before_it(place: Path) -> None:
    found = checkpoints.find("latest", place)
    assert (found.directory.name, found.by_user, found.trouble) == ("step-000006", False, ())
    assert names(found.before) == ["step-000004", "step-000002"]
    asked = checkpoints.find("step-000006", place)
    assert (asked.by_user, asked.before) == (True, ())


@pytest.mark.parametrize(
    ("latest", "says", "used"),
    [
        (None, "latest cannot be read: No such file or directory", "step-000006"),
        (b"", "latest is empty", "step-000006"),
        (b"\xff\x00\x12", "which is not the id of a checkpoint", "step-000006"),
        (b"../elsewhere", "contains '../elsewhere', which is not the id of a checkpoint", "step-000006"),
        (b"step-000005\n", "names 'step-000005', which does not exist", "step-000004"),
    ],
)
def test_without_a_good_latest(latest: bytes | None, says: str, used: str, place: Path) -> None:
    (place / "latest").unlink()
    if latest is not None:
        (place / "latest").write_bytes(latest)
    found = checkpoints.find("latest", place)
    assert found.directory.name == used
    assert len(found.trouble) == 1
    assert says in found.trouble[0]


@pytest.mark.parametrize("record", [None, b"", b"{", b"[]", b"{}", b'{"format": 1}', b"\xff"])
def test_an_unreadable_record(record: bytes | None, place: Path) -> None:
    file = place / "step-000006" / "checkpoint.json"
    file.unlink()
    if record is not None:
        file.write_bytes(record)
    found = checkpoints.find("latest", place)
    assert found.directory.name == "step-000004"
    assert f"{file} cannot be read as a checkpoint's" in found.trouble[0]
    with pytest.raises(
        CommonMistake, match="cannot be read .*; intact checkpoints: step-000002, step-000004$"
    ):
        checkpoints.find("step-000006", place)


def test_a_run_does_not_fall_back_on_the_future_of_another(place: Path) -> None:
    """After --resume step-000002 and a save, what lies there of later steps is not this run's past."""
    checkpoint(place, 3)
    found = checkpoints.find("latest", place)
    assert (found.directory.name, names(found.before)) == ("step-000003", ["step-000002"])


def test_nothing_whole(place: Path) -> None:
    (place / "latest").write_text("step-000004\n")
    for step in (2, 4):
        (place / f"step-{step:06d}" / "checkpoint.json").write_text("")
    with pytest.raises(CommonMistake) as error:
        checkpoints.find("latest", place)
    text = str(error.value)
    assert text.count("cannot be read as a checkpoint's") == 2
    assert text.endswith("; --resume can use step-000006")


def test_any_in(tmp_path: Path) -> None:
    assert not checkpoints.any_in(None)
    (tmp_path / ".step-000001.node-7.writing").mkdir()
    assert not checkpoints.any_in(tmp_path)
    checkpoint(tmp_path, 1)
    (tmp_path / "latest").unlink()
    assert checkpoints.any_in(tmp_path)


@pytest.mark.parametrize("how", ["missing", "short", "another bit"])
def test_every_file_is_looked_at_by_some_rank(how: str, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, 1)
    for number in range(5):
        (folder / f"rank-{number:05d}.pt").write_bytes(bytes([number]) * (number + 1))
    record = json.loads((folder / "checkpoint.json").read_text())
    for file in folder.glob("rank-*"):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        record["files"][file.name] = {"bytes": file.stat().st_size, "sha256": digest}
    atomic.write_json(folder / "checkpoint.json", record)
    found = checkpoints.find("latest", tmp_path)
    assert [checkpoints.Check(found, rank, 2).damage() for rank in (0, 1)] == [None, None]
    file = folder / "rank-00003.pt"
    if how == "missing":
        file.unlink()
    else:
        file.write_bytes(b"\3\3\3" if how == "short" else b"\3\3\3\2")
    said = [checkpoints.Check(found, rank, 3).damage() for rank in range(3)]
    assert any(text and str(file) in text for text in said)


def test_what_crashes_leave_is_cleared_away(place: Path) -> None:
    for rest in (".step-000008.node-7.writing", ".step-000001.removing", ".step-000004.node-7.replaced"):
        (place / rest / "deepspeed").mkdir(parents=True)
    (place / ".latest.writing").write_text("step-0")
    directory.make_ready(place)
    assert sorted(path.name for path in place.iterdir()) == [
        "latest",
        "step-000002",
        "step-000004",
        "step-000006",
    ]


def test_one_that_was_being_replaced_gets_its_name_back(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, 1)
    folder.rename(tmp_path / ".step-000001.node-7.replaced")
    assert checkpoints.find("latest", tmp_path).directory == folder
    assert (folder / "model.pt").is_file()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    done = start(tmp_path_factory.mktemp("whole"), "warm", RUN)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def copy(finished: Finished, tmp_path: Path) -> Path:
    """A directory of checkpoints for a test of its own."""
    return shutil.copytree(finished.directory / "checkpoints", tmp_path / "run" / "checkpoints")


def test_a_run_falls_back(finished: Finished, copy: Path, tmp_path: Path) -> None:
    """Two damaged ones, in files that different ranks look at: one warning, and the same end."""
    (copy / LAST / "rank-00001.pt").unlink()
    model = copy / "step-000020" / "model.pt"
    content = bytearray(model.read_bytes())
    content[len(content) // 2] ^= 1
    model.write_bytes(content)
    (copy / ".step-000021.node-7.writing").mkdir()
    done = start(tmp_path, "warm", [*RUN, "--resume"])
    assert done.returncode == 0, done.stderr
    [warning] = [line for line in done.stderr.splitlines() if "warning" in line and "jobgen" in line]
    assert f"{copy / LAST / 'rank-00001.pt'} cannot be read: No such file or directory" in warning
    assert f"{model} is damaged: its SHA-256 differs from that of the written data" in warning
    assert warning.endswith("step-000015, the newest intact one, is used instead")
    assert "after step 15" in done.stdout
    assert done.metrics("epoch")[-1]["test_loss"] == finished.metrics("epoch")[-1]["test_loss"]
    assert not list(copy.glob(".*"))
    found = checkpoints.at(copy)
    assert found.directory.name == LAST
    directory.verify(found.directory, found.record["files"])


def test_a_run_that_names_its_checkpoint_does_not_fall_back(copy: Path, tmp_path: Path) -> None:
    (copy / "step-000020" / "rank-00000.pt").write_bytes(b"")
    (copy / "step-000010" / "model.pt").unlink()
    done = start(tmp_path, "warm", [*RUN, "--resume", "step-000020"])
    assert done.status["exit_status"] == 2
    [line] = [line for line in done.stderr.splitlines() if "jobgen.train: " in line]
    assert "--resume step-000020: " in line
    assert "rank-00000.pt is damaged: it has 0 bytes, but" in line
    assert line.endswith("; intact checkpoints: step-000005, step-000015, step-000023")


def test_a_run_with_nothing_whole(copy: Path, tmp_path: Path) -> None:
    for file in copy.glob("step-*/model.pt"):
        file.unlink()
    done = start(tmp_path, "warm", [*RUN, "--global-batch", "64", "--resume"], ranks=1)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.count("model.pt cannot be read: No such file") == 5
    assert "--resume: no checkpoint in" in done.stderr


def test_errors_of_places(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no checkpoint in"):
        checkpoints.at(tmp_path)


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (["--engine", "ddp", "--optimizer", "sgd", "--lr", "1e30"], "step-000001"),
        (["--zero-stage", "3", "--lr", "1e30"], "step-000001"),
        (["--engine", "ddp", "--optimizer", "sgd", "--lr", "3e38", "--weight-decay", "99"], None),
    ],
)
def test_numbers_that_are_not_finite_are_not_saved(
    tmp_path: Path, options: list[str], kept: str | None
) -> None:
    """The losses are reported only later, and with --keep 1 the last good checkpoint would be removed."""
    done = start(tmp_path, "warm", ["--epochs", "1", "--keep", "1", *SELDOM, "--model", "mlp", *options])
    assert done.returncode == 1
    rest = f"{kept} is intact and is kept" if kept else "there is no earlier checkpoint"
    why = f"not finite at step {2 if kept else 1}, which is not saved: try a smaller --lr; {rest}"
    if "--zero-stage" in options:  # DeepSpeed finds it in the gradients, before there is anything to save
        why = "the gradients of step 2 are not finite: try a smaller --lr"
    assert why in done.stderr
    folder = done.directory / "checkpoints"
    assert [each.name for each in folder.glob("step-*")] == ([kept] if kept else [])
