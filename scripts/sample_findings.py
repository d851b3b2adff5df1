"""Draw findings at random, to be read one by one: is each of them right?

    python scripts/sample_findings.py FOLDER... > sample.tsv

Prints path (below the folder), line, code and the text found, separated by tabs. The same findings
and the same seed give the same sample.
"""

import argparse
import random
from pathlib import Path

from npulens.catalog.loader import load_catalogue
from npulens.workspace.files.discovery import discover
from npulens.workspace.project.project_facts import project_facts
from npulens.workspace.runs.run import Checker
from npulens.workspace.settings.configuration import Configuration


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--codes", default="NPU1", help="beginning of the codes to draw from")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=20)
    options = parser.parse_args()
    catalogue, configuration = load_catalogue(), Configuration()
    rows = []
    for folder in options.folders:
        files = discover([str(folder)], (), folder).files
        project = project_facts(files, [folder], catalogue)
        checker = Checker(catalogue, configuration, project)
        for file in files:
            report = checker.check_file(file)
            for finding in report.findings:
                document = report.document
                if document is None or not finding.rule.code.startswith(options.codes):
                    continue
                line = document.position_at(finding.span.start).line + 1
                text = " ".join(document.text[slice(*finding.span)].split())
                rows.append(
                    (f"{folder.name}/{file.relative_to(folder)}", line, finding.rule.code, text)
                )
    sample = random.Random(options.seed).sample(rows, min(options.count, len(rows)))
    for row in sorted(sample):
        print(*row, sep="\t")


if __name__ == "__main__":
    main()
