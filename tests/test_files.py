import os

import pytest

from lpcfg_sk._files import written_in_one_step


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), written_in_one_step(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_the_new_file_is_not_seen_before_it_is_complete(tmp_path):
    path = tmp_path / "file"
    with written_in_one_step(path) as file:
        file.write(b"new")
        file.flush()
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_missing_folders_are_an_error_and_names_without_folder_are_not(
    tmp_path, monkeypatch
):
    with (
        pytest.raises(FileNotFoundError),
        written_in_one_step(tmp_path / "none" / "file"),
    ):
        pass
    monkeypatch.chdir(tmp_path)
    with written_in_one_step("file") as file:
        file.write(b"here")
    assert (tmp_path / "file").read_bytes() == b"here"
