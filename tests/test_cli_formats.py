"""The forms of a report.

What the published schemas of SARIF and of the xUnit plugin of Jenkins (JUnit) ask of the parts that
are used here is written out below; `tests/test_output_schemas.py` holds SARIF against its own.
"""

import csv
import io
import json
import os
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import npulens
from commands import CLEAN, CODE, command, invoke, records

pytestmark = pytest.mark.usefixtures("here")

MIXED = """\
import torch
名 = "😀"; torch.cuda.synchronize()
torch.cuda.nvtx.range_push("x")
model = torch.nn.DataParallel(model)
x = torch.ones(2).to(
    "cuda"
)
"""
FORMATS = ["human", "concise", "json", "jsonl", "csv", "sarif", "github", "gitlab", "junit"]


@pytest.fixture
def project(here: Path) -> Path:
    (here / "a.py").write_text(MIXED, encoding="utf-8")
    (here / "clean.py").write_text(CLEAN)
    (here / "sub dir").mkdir()
    (here / "sub dir/b,c.py").write_text(CODE * 2)
    (here / "z.py").write_bytes(b"import torch\n\xff")
    return here


def shown(form: str, *arguments: str) -> str:
    code, output, errors = invoke("check", "--output-format", form, *arguments)
    assert code in (0, 1), errors
    return output


class TestConcise:
    def test_a_line_for_each(self, project: Path) -> None:
        lines = shown("concise").splitlines()
        assert len(lines) == len(records())
        assert lines[0].startswith("a.py:2:10: NPU101 `torch.cuda.synchronize` needs CUDA")

    def test_nothing(self, here: Path) -> None:
        (here / "a.py").write_text(CLEAN)
        assert shown("concise") == ""


class TestCsv:
    def test_rows(self, project: Path) -> None:
        rows = list(csv.DictReader(io.StringIO(shown("csv"), newline="")))
        expected = records()
        assert [row["message"] for row in rows] == [record["message"] for record in expected]
        for row, record in zip(rows, expected, strict=True):
            for key in ("path", "severity", "code", "name", "family"):
                assert row[key] == record[key]
            assert (int(row["line"]), int(row["column"])) == (record["line"], record["column"])
            fix = record["fix"]
            assert row["fix"] == (fix["applicability"] if fix else "")

    def test_heading_alone(self, here: Path) -> None:
        (here / "a.py").write_text(CLEAN)
        assert shown("csv") == "path,line,column,severity,code,name,family,fix,message,cell\n"

    def test_a_name_is_no_formula(self, here: Path) -> None:
        (here / "=1+1.py").write_text(CODE)
        (row,) = csv.DictReader(io.StringIO(shown("csv", "=1+1.py")))
        assert row["path"] == "./=1+1.py"


LEVELS = {"error": "error", "warning": "warning", "info": "note", "hint": "note"}


def region_is_right(region: dict[str, Any]) -> None:
    assert set(region) == {"startLine", "startColumn", "endLine", "endColumn"}
    assert all(isinstance(number, int) and number >= 1 for number in region.values())
    start = region["startLine"], region["startColumn"]
    assert start <= (region["endLine"], region["endColumn"])


def location_is_right(artifact: dict[str, str]) -> None:
    assert re.fullmatch(r"(?:[A-Za-z0-9._~/,=+!$&'()*;:@-]|%[0-9A-F]{2})+", artifact["uri"])
    assert ("uriBaseId" in artifact) != artifact["uri"].startswith("file:///")


class TestSarif:
    """`version` and `runs` of a log, `tool` of a run, `message` of a result, and so on."""

    @pytest.fixture
    def run(self, project: Path) -> dict[str, Any]:
        log = json.loads(shown("sarif"))
        assert set(log) == {"version", "runs"}
        assert log["version"] == "2.1.0"
        (run,) = log["runs"]
        found: dict[str, Any] = run
        return found

    def test_run(self, run: dict[str, Any]) -> None:
        assert run["columnKind"] == "unicodeCodePoints"
        assert re.fullmatch(r"[a-zA-Z]{2}(-[a-zA-Z]{2})?", run["language"])
        driver = run["tool"]["driver"]
        assert (driver["name"], driver["semanticVersion"]) == ("npulens", npulens.__version__)
        for rule in driver["rules"]:
            assert re.fullmatch(r"NPU\d{3}", rule["id"])
            assert rule["help"]["text"]
            assert rule["shortDescription"]["text"]
            assert "helpUri" not in rule and rule["help"]["text"]
            assert rule["defaultConfiguration"]["level"] in LEVELS.values()
        ids = [rule["id"] for rule in driver["rules"]]
        assert len(ids) == len(set(ids))

    def test_results(self, run: dict[str, Any]) -> None:
        expected = records()
        assert len(run["results"]) == len(expected)
        for result, record in zip(run["results"], expected, strict=True):
            assert result["ruleId"] == record["code"]
            assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == record["code"]
            assert result["level"] == LEVELS[record["severity"]]
            assert result["message"]["text"] == record["message"]
            (location,) = result["locations"]
            place = location["physicalLocation"]
            location_is_right(place["artifactLocation"])
            region_is_right(place["region"])
            assert place["region"]["startLine"] == record["line"]
            assert place["region"]["endColumn"] == record["end_column"]
            assert all(isinstance(mark, str) for mark in result["partialFingerprints"].values())
            for related in result.get("relatedLocations", ()):
                region_is_right(related["physicalLocation"]["region"])
            assert ("fixes" in result) == (record["fix"] is not None)
            for fix in result.get("fixes", ()):
                (change,) = fix["artifactChanges"]
                location_is_right(change["artifactLocation"])
                assert len(change["replacements"]) == len(record["fix"]["edits"])
                for replacement in change["replacements"]:
                    region_is_right(replacement["deletedRegion"])
                    assert isinstance(replacement["insertedContent"]["text"], str)

    def test_names_of_files_are_references(self, run: dict[str, Any]) -> None:
        places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
        assert {place["artifactLocation"]["uri"] for place in places} == {
            "a.py",
            "sub%20dir/b%2Cc.py",
            "z.py",
        }

    def test_outside_of_the_folder(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(project / "sub dir")
        log = json.loads(shown("sarif", "../a.py"))
        place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
        assert place["artifactLocation"] == {"uri": f"file://{project}/a.py"}

    def test_nothing(self, here: Path) -> None:
        (here / "a.py").write_text(CLEAN)
        assert json.loads(shown("sarif"))["runs"][0]["results"] == []

    def test_chinese(self, project: Path) -> None:
        run = json.loads(shown("sarif", "--language", "zh"))["runs"][0]
        assert run["language"] == "zh-CN"
        assert "请" in shown("sarif", "--language", "zh") or "用" in str(run["results"])


class TestGitHub:
    def test_commands(self, project: Path) -> None:
        lines = shown("github").splitlines()
        assert len(lines) == len(records())
        place = r"file=[^,:]+,line=\d+,endLine=\d+,title=[^,:]+(,col=\d+,endColumn=\d+)?"
        pattern = rf"::(error|warning|notice) {place}::.+"
        assert all(re.fullmatch(pattern, line) for line in lines)
        assert any("file=sub dir/b%2Cc.py," in line for line in lines)

    @pytest.mark.skipif(os.name == "nt", reason="names of files are freer on POSIX")
    def test_a_name_cannot_give_commands(self, here: Path) -> None:
        (here / "a\n::stop-commands::x\n%.py").write_text(CODE)
        output = command("check", "--output-format", "github").stdout.decode()
        assert output.count("\n") == 1
        assert "file=a%0A%3A%3Astop-commands%3A%3Ax%0A%25.py," in output


class TestGitLab:
    def test_report(self, project: Path) -> None:
        issues = json.loads(shown("gitlab"))
        expected = records()
        assert [issue["description"] for issue in issues] == [r["message"] for r in expected]
        for issue, record in zip(issues, expected, strict=True):
            assert issue["severity"] in {"info", "minor", "major", "critical", "blocker"}
            assert issue["check_name"] == f"{record['code']} {record['name']}"
            assert issue["location"]["path"] == record["path"]
            assert issue["location"]["lines"]["begin"] == record["line"]
        fingerprints = [issue["fingerprint"] for issue in issues]
        assert len(set(fingerprints)) == len(fingerprints)

    def test_fingerprints_move_along(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        (before,) = json.loads(shown("gitlab"))
        (here / "a.py").write_text("# new\n\n" + CODE)
        (after,) = json.loads(shown("gitlab"))
        assert after["fingerprint"] == before["fingerprint"]
        assert after["location"]["lines"]["begin"] == before["location"]["lines"]["begin"] + 2

    def test_nothing(self, here: Path) -> None:
        (here / "a.py").write_text(CLEAN)
        assert json.loads(shown("gitlab")) == []


ATTRIBUTES = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, set()),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "file"},
        {"name", "tests", "failures", "errors"},
    ),
    "testcase": ({"name", "classname", "time", "group"}, {"name"}),
    "failure": ({"type", "message"}, set()),
}
"""Of each element, the attributes that it may have and those it must."""
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"testcase"},
    "testcase": {"failure"},
    "failure": set(),
}


class TestJUnit:
    def suites(self, *arguments: str) -> ET.Element:
        root = ET.fromstring(shown("junit", *arguments).encode())
        assert root.tag == "testsuites"
        for element in root.iter():
            allowed, required = ATTRIBUTES[element.tag]
            assert required <= set(element.attrib) <= allowed
            assert {child.tag for child in element} <= CHILDREN[element.tag]
        for element in root.iter("testsuite"):
            assert int(element.attrib["tests"]) == len(element)
            assert int(element.attrib["failures"]) == len(list(element.iter("failure")))
        return root

    def test_report(self, project: Path) -> None:
        root = self.suites()
        messages = [failure.attrib["message"] for failure in root.iter("failure")]
        assert messages == [record["message"] for record in records()]
        assert [suite.attrib["name"] for suite in root] == ["a.py", "z.py", "sub dir/b,c.py"]

    def test_nothing_found_is_a_test_that_passed(self, here: Path) -> None:
        (here / "a.py").write_text(CLEAN)
        root = self.suites()
        assert [case.tag for suite in root for case in suite] == ["testcase"]
        assert root.attrib["failures"] == "0"

    @pytest.mark.skipif(sys.platform != "linux", reason="needs names that are any bytes")
    def test_what_xml_has_no_characters_for(self, here: Path) -> None:
        (here / os.fsdecode(b'\x01<&"\xff.py')).write_text(CODE)
        root = ET.fromstring(command("check", "--output-format", "junit").stdout)
        assert root[0].attrib["name"] == '�<&"�.py'


@pytest.mark.family(3)
@pytest.mark.parametrize("form", FORMATS)
class TestEveryForm:
    def test_processes_and_the_cache_change_nothing(self, project: Path, form: str) -> None:
        for index in range(40):
            (project / f"{index:02}.py").write_text(CODE)
        expected = shown(form, "--no-cache", "--jobs", "1")
        by_three = command("check", "--output-format", form, "--no-cache", "--jobs", "3")
        assert by_three.stdout.decode() == expected
        assert shown(form) == expected
        assert shown(form) == expected

    def test_to_a_file(self, project: Path, form: str) -> None:
        expected = shown(form)
        code, output, errors = invoke("check", "--output-format", form, "--output-file", "out")
        assert (code, output) == (1, "")
        # A program that reads the file finds nothing in it but what it expects.
        line = "" if form == "human" else "1 file not read (--show-skipped lists them).\n"
        assert errors == line
        assert (project / "out").read_bytes().decode() == expected


class TestOutputFile:
    def test_that_cannot_be_written(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        result = command("check", "--output-file", "missing/out")
        assert result.returncode == 2
        assert result.stderr == b"npulens: missing/out: cannot be written: no such folder\n"

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_on_a_full_disk(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        result = command("check", "--output-file", "/dev/full")
        assert result.returncode == 2
        assert result.stderr == b"npulens: /dev/full: cannot be written: No space left on device\n"

    def test_a_link_stays(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        (here / "real").mkdir()
        (here / "real/out.txt").write_text("old")
        (here / "out.txt").symlink_to("real/out.txt")
        assert invoke("check", "--output-file", "out.txt")[0] == 1
        assert (here / "out.txt").is_symlink()
        assert "NPU101" in (here / "real/out.txt").read_text()


COMMANDS = "\x1b[2J\x9b31m\u202e"


@pytest.mark.family(3)
@pytest.mark.skipif(os.name == "nt", reason="no such names there")
@pytest.mark.parametrize("form", FORMATS)
def test_names_of_files_do_not_command_a_terminal(here: Path, form: str) -> None:
    (here / f"x{COMMANDS}.py").write_text(CODE)
    # Written to a file: standard output is cleaned of escape sequences unless it is a terminal.
    command("check", "--output-format", form, "--output-file", "report")
    written = (here / "report").read_text(encoding="utf-8")
    assert "NPU101" in written
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", written)


def test_names_of_files_are_whole_in_json(here: Path) -> None:
    (here / f"x{COMMANDS}.py").write_text(CODE)
    assert [record["path"] for record in records()] == [f"x{COMMANDS}.py"]
