#!/usr/bin/env python3
"""Checks comments and Markdown for the patterns that make sentences hard to read, and code for British spellings and
'a' in place of per. Prints file:line: pattern: text."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Generated pages, raw logs, diaries and data are left as they are.
EXEMPT = ("docs/claims.md", "docs/configuration.md", "docs/gpu/", "docs/lab/", "shared/", "data/")
SLASHES = (".h", ".cc", ".cu", ".cuh", ".c")
HASHES = (".py", ".cmake", ".toml", ".sh", "CMakeLists.txt", "Makefile")

MAX_WORDS = 40

# Nouns that are counted per something: "one file a command".
COUNTED = "|".join(
    "actions? arguments? bars? bits? blocks? bytes? calls? cells? columns? copies copy curves? decisions? draws? "
    "elements? entries entry environments? episodes? figures? files? floats? folders? frames? games? groups? "
    "kernels? launch(?:es)? layers? lines? locks? masks? members? messages? nodes? numbers? observations? panels? "
    "pieces? points? records? rows? runs? samples? seeds? slots? steps? streams? threads? times? transitions? "
    "tests? updates? values? warps? words? writes?".split())
COUNT = r"(?:an?|one|two|three|four|five|six|eight|ten|\d[\d.,]*|no|each|few|many|fewer|more)"
PER = "|".join(
    "action actor agent array batch block branch call cell channel character chain claim class column command component "
    "consumer core decision draw element entry environment episode figure file folder frame function game gpu group image "
    "item job kernel key kind layer leaf learner level line mask member message name node number observation output panel "
    "parameter part point pixel policy program purpose question record row round run sample seed slot stage statistic step "
    "stream sweep task test thread time transition unit update value variant warp window word worker".split())
# Without the noun: "at most one a learner".
NUMBER = r"(?:one|two|three|four|five|six|eight|ten)"

# Spellings of British English, without their endings.
ISE = ("categor character critic discret emphas equal final general initial local maxim memor minim normal optim organ "
       "parametr parameter penal priorit quant random real recogn regular serial special standard summar synchron util "
       "vector visual").split()
BRITISH = ("colours? coloured grey greys greyed behaviours? favours? favourable neighbours? neighbouring neighbourhoods? "
           "honours? centres? centred licences? modelling modelled labelling labelled catalogues? artefacts? whilst "
           "analyse[drs]? analysers? analysing fulfil defence judgement programmes? cancelled cancelling travelled").split()

# Words of the private vocabulary that the code has given up, and what stands in their place.
GONE = {
    r"growths?": "append batch",
    r"sights?": "actor view",
    r"(?:the|a|what|all|who(?: has)?) played": "actor step",
    r"(?:brings?|brought|bringing) (?:\w+ )?home": "sync to host",
    r"(?:has|have|is|are|was|were) shown (?:them|it|to a host)|shown (?:values?|counts?)": "published",
    r"follows? the host": "mirrors the host",
    r"findings?": "statistics",
    r"few rows": "skinny gemm",
    r"pictures? (?:stack|pair|product|weights|sums)": "conv_...",
    r"pixel (?:shares?|columns?)": "pixel tiles",
    r"crowded": "shares the GPU",
    r"massless": "uniform fallback",
    r"part clock": "update profile",
    r"plane tables?": "frame pointer table",
    r"(?:steps? )?ahead tables?": "reserved frames",
    r"remote selectors?": "mirror selector",
    r"record (?:replay|observations)": "whole observations",
}


def regex(text):
    return re.compile(text, re.IGNORECASE)


# Name -> expression; every match in the prose of a file is a hit.
PATTERNS = {
    "'but for' (say: except for)": regex(r"\bbut for\b"),
    "'a' for per (say: per ...)": regex(
        rf"\b(?:{COUNT} (?:[\w-]+ )?(?:{COUNTED})|{NUMBER}|once|twice) an? (?:{PER})\b(?! (?:of|is|was|has|may))"),
    "'is said', 'is asked' (name who does it)": regex(r"\b(?:is|are|was|were) (?:said|asked)\b"),
    "'what is new' (name it)": regex(r"\bwhat is new\b"),
    "chain of 'those'": regex(r"\bthose (?:of|that|who|which|in|with|for)\b[^.;:?!]*\bthose (?:of|that|who|which|in|with|for)\b"),
    "British spelling": re.compile(
        rf"\b(?:(?:de|re|un|pre)?(?:{'|'.join(ISE)})is(?:e|ed|es|er|ers|ing|ations?|able)|{'|'.join(BRITISH)})\b",
        re.IGNORECASE),
    "doubled word": re.compile(r"\b([A-Za-z]{2,}) \1\b(?<!that that)(?<!had had)"),
    "word that is gone": regex(rf"\b(?:{'|'.join(GONE)})\b"),
}
# These look at the beginning of a comment.
OPENINGS = {
    "opening 'What ...' (say what it is or does)": re.compile(r"What (?![^.]*\?)"),
    "opening 'Of ...' (name the thing)": re.compile(r"Of (?:the|a|an|those|that|its|what|one|all)\b"),
}
# These are for code, too: identifiers, strings, comments behind other languages' code.
CODE_PATTERNS = {name: PATTERNS[name] for name in ("'a' for per (say: per ...)", "British spelling")}
# Words that stay as they are, and why.
CODE_EXCEPTIONS = {
    "the column of the scores' CSV files": r"""["']normalised["']""",
    "a random stream: results depend on its name": r'"initialisation"',
    "names of the Atari emulator": r"\b[cC]olourPalette\b|\bmyFrameGreyed\b",
    "misspelled on purpose": r"\[(?:grid\.)?optimiser\]|unknown key 'optimiser'",
}
CODE_EXCEPTION = re.compile("|".join(CODE_EXCEPTIONS.values()))
CODE_EXEMPT = ("tools/check_words.py", "tests/test_tools.py")  # they name bad words
PAGES = (".html", ".cff")  # read as code
WORD_BEGIN = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+")  # within an identifier

NOT_FOR = re.compile(r"\bnot for\b[^.;:]*$")  # "not for speed but for safety"
LONG = f"sentence over {MAX_WORDS} words"
SENTENCE_END = re.compile(r"[.!?:](?=\s+[A-Z`\"(*\[_]|\s*$)|[.!?]\)(?=\s|$)")
WORD = re.compile(r"\S*[A-Za-z_]\S*")
HIDDEN = re.compile(r"`[^`]*`|\"[^\"]{1,60}\"|\]\([^)]*\)|https?://\S+|\$[^$]*\$")
# Lines that begin something of their own: list entries, formulas, separators.
OWN_BLOCK = re.compile(r"\s*(?:[-*+] |\d+\. |\|)|\s{3,}\S")


def masked(text):
    """The text with code, quotations and addresses replaced by underscores of the same length."""
    return HIDDEN.sub(lambda found: re.sub(r"\S", "_", found.group()), text)


def blocks_of_lines(lines):
    """Joins (number, text) of neighboring lines; an empty text or a list entry begins a new block."""
    block = []
    for number, text in lines:
        if block and (number != block[-1][0] + 1 or not text.strip() or OWN_BLOCK.match(text)):
            yield block
            block = []
        if text.strip():
            block.append((number, text.strip()))
    if block:
        yield block


def parts_of_slash_line(line):
    """Code and comment (None if there is none) of a line of C++ or CUDA."""
    code, slashes, comment = line.partition("//")
    if not slashes or code.rstrip().endswith((":", '"')):
        return line, None
    return code, comment


def slash_comments(text):
    """Comments of C++ and CUDA; one behind code is a block of its own, for it need not go on."""
    whole = []
    for number, line in enumerate(text.splitlines(), 1):
        code, comment = parts_of_slash_line(line)
        if comment is None:
            continue
        if code.strip():
            yield [(number, comment.strip())]
        elif not comment.startswith(("NOLINT", " NOLINT", " clang-format")):
            whole.append((number, comment))
    yield from blocks_of_lines(whole)


DOCSTRING = re.compile(r'"""(.*?)"""', re.DOTALL)


def hash_comments(text):
    """Comments of Python, CMake, TOML and shell; of Python the documentation strings, too."""
    whole = [(number, line.strip().lstrip("#")) for number, line in enumerate(text.splitlines(), 1)
             if line.lstrip().startswith("#") and not line.startswith("#!")]
    yield from blocks_of_lines(whole)
    for found in DOCSTRING.finditer(text):
        first = text.count("\n", 0, found.start()) + 1
        yield from blocks_of_lines(list(enumerate(found.group(1).splitlines(), first)))


def markdown_prose(text):
    """Paragraphs, list entries and cells of tables; no code."""
    lines, fenced = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            continue
        elif line.startswith("|"):
            yield from ([(number, cell.strip())] for cell in masked(line).strip("|").split("|") if cell.strip())
        elif line.startswith("#"):
            yield [(number, line.strip("# "))]
        else:
            lines.append((number, line if line.strip() else ""))
    yield from blocks_of_lines(lines)


def code_lines(name, text):
    """(number, text) of what is not in the comments above; identifiers as words."""
    if name.endswith(".md") or name.startswith(CODE_EXEMPT):
        return
    if name.endswith(".py"):
        text = DOCSTRING.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    for number, line in enumerate(text.splitlines(), 1):
        if name.endswith(SLASHES):
            line = parts_of_slash_line(line)[0]
        elif line.lstrip().startswith("#") and not name.endswith(PAGES):
            continue
        yield number, WORD_BEGIN.sub(" ", CODE_EXCEPTION.sub("", line))


def blocks_of(name, text):
    if name.endswith(PAGES):
        return iter(())
    if name.endswith(".md"):
        return markdown_prose(text)
    return slash_comments(text) if name.endswith(SLASHES) else hash_comments(text)


def long_sentences(text):
    begin = 0
    for end in [*(found.end() for found in SENTENCE_END.finditer(text)), len(text)]:
        if len(WORD.findall(text, begin, end)) > MAX_WORDS:
            yield begin
        begin = end


def hits_in(name, text):
    """(line, pattern, excerpt) of everything in one file."""
    for block in blocks_of(name, text):
        prose = masked(" ".join(line for _, line in block))
        found = [(match.start(), pattern) for pattern, expression in PATTERNS.items() for match in expression.finditer(prose)
                 if not (match.group() == "but for" and NOT_FOR.search(prose, 0, match.start()))]
        found += [(begin + 1 if begin else 0, LONG) for begin in long_sentences(prose)]
        if not name.endswith(".md"):
            found += [(0, pattern) for pattern, expression in OPENINGS.items() if expression.match(prose)]
        for position, pattern in sorted(found):
            line, offset = block[0][0], 0
            for number, content in block:
                if offset > position:
                    break
                line, offset = number, offset + len(content) + 1
            shown = " ".join(content for _, content in block)[max(0, position - 20):position + 70]
            yield line, pattern, shown
    for number, line in code_lines(name, text):
        for pattern, expression in CODE_PATTERNS.items():
            for match in expression.finditer(line):
                yield number, pattern, line[max(0, match.start() - 20):match.start() + 70].strip()


def checked_files(root):
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True,
                           check=True).stdout.split("\n")
    return sorted(name for name in names if name.endswith((".md", *SLASHES, *HASHES, *PAGES)) and not name.startswith(EXEMPT))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="only these files and folders, from the root")
    wanted = tuple(parser.parse_args().files)
    names = [name for name in checked_files(ROOT) if not wanted or name.startswith(wanted)]
    hits = 0
    for name in names:
        if not (ROOT / name).is_file():
            continue
        for line, pattern, text in hits_in(name, (ROOT / name).read_text()):
            print(f"{name}:{line}: {pattern}: {text}")
            hits += 1
    print(f"words: {len(names)} files, {hits} hits")
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main())
