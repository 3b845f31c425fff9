#!/usr/bin/env python3
"""Compiles the top-down tables (data/topdown/*.txt) into C, and checks them.

    compile-topdown.py OUT.c meanings.txt TABLE.txt...
    compile-topdown.py --page PAGE.md meanings.txt TABLE.txt...         writes docs/topdown-trees.md
    compile-topdown.py --check-page PAGE.md meanings.txt TABLE.txt...   fails when it is not current

Checked for every table: each formula parses; each name in it is an event, a node or a let of that
table; nothing depends on itself; every event is used; parents exist and stand before their children;
thresholds are in percent, formulas are fractions; every node has a meaning; sums that are called
"closed" add up for any counts. Lines of a table (# comments):

    set TITLE | cpu NAME... | vendor intel|amd|arm | pmu NAME | width N | own-thresholds | percore
    like TABLE [levels N]                 everything but set and cpu as in TABLE.txt, of nodes levels 1 to N;
                                          what follows replaces lets, nodes and events of the same name, and
                                          events that nothing uses any more are left out
    let NAME = FORMULA                    upper case
    alias NAME = EVENT [* FACTOR]         NAME counts FACTOR times EVENT
    node NAME < PARENT|top slots|clocks|uops|stalls|events
        value FORMULA
        over N% [or NODE N%] [with parent]
    closed|about PARENT|1 = NODE...       parts of a whole: by construction, or but for the counts
    event NAME SELECT[/UMASK] [cmask=N] [edge] [any] [config1=N]
"""
import ast
import os
import random
import re
import sys

NAME = re.compile(r"(?<![\w.])#?[A-Za-z_](?:[\w.:@?]|\\.|(?<=[\w])=(?=0x))*")
FUNCTIONS = {"min": min, "max": max, "d_ratio": lambda a, b: a / b if b else 0.0}
UNITS = ["slots", "clocks", "uops", "stalls", "events"]
CONSTANTS = {"#smt_on", "#system_tsc_freq"}


class Wrong(Exception):
    pass


class Table:
    def __init__(self, path):
        self.path = path
        self.fields, self.lets, self.aliases, self.nodes, self.sums, self.events = {}, {}, {}, {}, [], {}
        self.code, self.inherited = {}, set()
        node = None
        with open(path, encoding="ascii") as lines:
            for self.line, text in enumerate(lines, 1):
                words = text.split()
                if words and not words[0].startswith("#"):
                    node = self.read(words[0], text.strip()[len(words[0]):].strip(), node)
        self.line = 0

    def fail(self, text):
        raise Wrong(f"{self.path}{f':{self.line}' if self.line else ''}: {text}")

    def match(self, pattern, text):
        return re.fullmatch(pattern, text) or self.fail(f"'{text}' is not understood")

    def read(self, key, rest, node):
        if key == "like":
            self.like(*self.match(r"(\S+)(?: levels (\d))?", rest).groups())
        elif key in ("set", "cpu", "vendor", "pmu", "width", "own-thresholds", "percore"):
            self.fields[key] = rest
        elif key == "let":
            name, formula = self.match(r"([A-Z]\w*) = (.+)", rest).groups()
            self.lets[name] = formula
        elif key == "alias":
            name, event, factor = self.match(r"(\S+) = (\S+)(?: \* (\d+))?", rest).groups()
            self.aliases[name] = (event, int(factor or 1))
        elif key == "node":
            title, parent, unit = self.match(r"(\w+) < (\w+) (\w+)", rest).groups()
            if unit not in UNITS:
                self.fail(f"unit {unit}")
            if parent != "top" and parent.lower() not in self.nodes:
                self.fail(f"the parent {parent} does not stand before {title}")
            node = {"title": title, "parent": parent.lower(), "unit": unit, "or": None}
            node["level"] = 1 if parent == "top" else self.nodes[parent.lower()]["level"] + 1
            if title.lower() in self.nodes and title.lower() not in self.inherited:
                self.fail(f"{title} stands there twice")
            if title.lower() in self.inherited and self.nodes[title.lower()]["parent"] != node["parent"]:
                self.fail(f"{title} has another parent than in the table that this one is like")
            self.inherited.discard(title.lower())
            self.nodes[title.lower()] = node
        elif key == "value":
            node["value"] = rest
            if re.match(r"100(\.0)? \*", rest):
                self.fail("formulas are fractions of 1, not percent")
        elif key == "over":
            share, other, other_share, parent = self.match(
                r"([\d.]+)%(?: or (\w+) ([\d.]+)%)?( with parent)?", rest).groups()
            node["over"], node["with_parent"] = float(share) / 100, bool(parent)
            if not 0 < node["over"] < 1:
                self.fail("a threshold lies between 0% and 100%")
            if other:
                node["or"] = (other, float(other_share) / 100)
        elif key in ("closed", "about"):
            whole, parts = self.match(r"(\w+) = ([\w ]+)", rest).groups()
            self.sums.append((key, whole, parts.split()))
        elif key == "event":
            self.event(rest.split())
        else:
            self.fail(f"'{key}' is not understood")
        return node

    def like(self, name, levels):
        base = Table(os.path.join(os.path.dirname(self.path), name + ".txt"))
        self.fields.update({key: value for key, value in base.fields.items() if key not in ("set", "cpu")})
        self.nodes = {name: node for name, node in base.nodes.items() if node["level"] <= int(levels or 9)}
        self.sums = [s for s in base.sums if s[2][0] in self.nodes]
        self.lets, self.aliases, self.events = dict(base.lets), dict(base.aliases), dict(base.events)
        self.inherited = set(self.nodes) | set(self.events)

    def drop_unused(self):
        """Of what came from another table: lets and events that no node needs."""
        used, todo = set(), list(self.nodes) + ["CYCLES", "SLOTS", "INSTRUCTIONS", "S4"]
        while todo:
            name = todo.pop()
            formula = self.lets.get(name) or (self.nodes[name]["value"] if name in self.nodes else None)
            if name not in used:
                used.add(name)
                todo += self.names(formula) if formula else []
        self.lets = {name: let for name, let in self.lets.items() if name in used}
        self.events = {name: event for name, event in self.events.items()
                       if name in used or name not in self.inherited}
        self.aliases = {name: alias for name, alias in self.aliases.items() if alias[0] in self.events}

    def event(self, words):
        name, code = words[0].lower(), words[1]
        select, _, umask = code.partition("/")
        select, umask = int(select, 16), int(umask or "0", 16)
        config, config1 = select, 0
        if self.fields["vendor"] != "arm":
            config = (select & 0xFF) | umask << 8 | (select >> 8) << 32
        for word in words[2:]:
            key, _, value = word.partition("=")
            if key == "cmask":
                config |= int(value) << 24
            elif key == "edge":
                config |= 1 << 18
            elif key == "any":
                config |= 1 << 21
            elif key == "config1":
                config1 = int(value, 16)
            else:
                self.fail(f"'{word}' is not understood")
        if name in self.events and name not in self.inherited:
            self.fail(f"the event {name} stands there twice")
        self.inherited.discard(name)
        self.events[name] = (words[0], config, config1)

    # --- checks ---

    def names(self, formula):
        found = {plain(m.group()) for m in NAME.finditer(formula)}
        return found - {"if", "else", "has_event"} - set(FUNCTIONS)

    def compile(self, what, formula):
        def replace(m):
            word = m.group()
            if word in ("if", "else") or word in FUNCTIONS:
                return word
            if word == "has_event":
                return "H"
            return f"V({plain(word)!r})"
        text = NAME.sub(replace, formula)
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except SyntaxError as error:
            self.fail(f"{what}: '{formula}': {error.msg}")
        allowed = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.Call, ast.Name, ast.Load,
                   ast.Constant, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.USub, ast.Lt, ast.Gt)
        for part in ast.walk(tree):
            if not isinstance(part, allowed):
                self.fail(f"{what}: {type(part).__name__} is not in the language")
        return compile(tree, what, "eval")

    def check(self, meanings, sums=True):
        for key in ("set", "cpu", "vendor", "pmu", "width"):
            if key not in self.fields:
                self.fail(f"no line '{key}'")
        if any(name in self.inherited for name in self.events):
            self.drop_unused()
        for name, (event, _) in self.aliases.items():
            if event not in self.events or name in self.events:
                self.fail(f"alias {name}: of an event that is not there, or an event itself")
        used = set()
        for name, formula in list(self.lets.items()) + [(n, node.get("value")) for n, node in self.nodes.items()]:
            if not formula:
                self.fail(f"{name} has no value")
            self.code[name] = self.compile(name, formula)
            for word in self.names(formula):
                if not (word in self.events or word in self.lets or word in self.nodes or word in CONSTANTS):
                    self.fail(f"{name}: nothing is called '{word}'")
                used.add(word)
        for event in self.events:
            if event not in used:
                self.fail(f"the event {event} is not used")
        for name in self.code:
            self.depends(name, [])
        for name, node in self.nodes.items():
            if node["title"] not in meanings:
                self.fail(f"{node['title']} has no meaning")
            if "over" not in node:
                self.fail(f"{node['title']} has no threshold")
            if node["or"] and node["or"][0] not in self.nodes:
                self.fail(f"{node['title']}: no node {node['or'][0]}")
            if self.fields["vendor"] == "intel" and node["level"] == 1 and node["unit"] != "slots":
                self.fail(f"{node['title']}: level 1 is of slots")
        if sums:
            self.check_sums()

    def depends(self, name, path):
        if name in path:
            self.fail(f"{name} depends on itself: {' > '.join(path)}")
        formula = self.lets.get(name) or self.nodes[name]["value"]
        for word in self.names(formula):
            if word in self.lets or word in self.nodes:
                self.depends(word, path + [name])

    def evaluate(self, name, counts, memo):
        def value(word):
            if word in counts:
                return counts[word]
            if word not in memo:
                memo[word] = eval(self.code[word], scope)  # pylint: disable=eval-used
            return memo[word]
        scope = {"V": value, "H": lambda x: 1, "__builtins__": {}, **FUNCTIONS}
        return value(name)

    def check_sums(self):
        random.seed(1)
        for kind, whole, parts in self.sums:
            for part in parts:
                if part not in self.nodes:
                    self.fail(f"sum of {whole}: no node {part}")
                if self.nodes[part]["parent"] != ("top" if whole == "1" else whole):
                    self.fail(f"{part} is not a child of {whole}")
                if self.nodes[part]["unit"] != "slots":
                    self.fail(f"{part} is no share of slots: it cannot be summed")
            tried = 0
            for _ in range(4000):
                if kind == "about":
                    break
                counts = {e: random.uniform(1, 1000) for e in self.events}
                counts.update({"#smt_on": random.randint(0, 1), "#system_tsc_freq": 2e9})
                if "slots" in counts:
                    counts["slots"] *= 20
                memo = {}
                values = [self.evaluate(p, counts, memo) for p in parts]
                total = 1.0 if whole == "1" else self.evaluate(whole, counts, memo)
                if min(values) <= 0:
                    continue  # held at 0 by max(): no longer a sum
                tried += 1
                if abs(sum(values) - total) > 1e-9 * max(1, abs(total)):
                    self.fail(f"{' + '.join(parts)} = {sum(values)}, not {whole} = {total}")
            if kind == "closed" and tried < 20:
                self.fail(f"the sum of {whole} could be tried only {tried} times")


def plain(word):
    return re.sub(r"\\(.)", r"\1", word)


def read_meanings(path):
    meanings = {}
    with open(path, encoding="ascii") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                name, means, helps = (part.strip() for part in line.split("|"))
                meanings[name] = (means, helps)
    return meanings


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def emit(table, index, meanings, out):
    order = list(table.nodes)
    vendor = table.fields["vendor"]
    out.append(f"static const struct topdown_event events_{index}[] = {{")
    for name in sorted(table.events):
        title, config, config1 = table.events[name]
        out.append(f"\t{{{quote(name)}, {quote(title)}, UINT64_C({config:#x}), UINT64_C({config1:#x})}},")
    out.append(f"}};\nstatic const struct topdown_alias aliases_{index}[] = {{")
    for name in sorted(table.aliases):
        event, factor = table.aliases[name]
        out.append(f"\t{{{quote(name)}, {quote(event)}, {factor}}},")
    out.append(f"}};\nstatic const struct topdown_let lets_{index}[] = {{")
    for name in sorted(table.lets):
        out.append(f"\t{{{quote(name)}, {quote(table.lets[name])}}},")
    out.append(f"}};\nstatic const struct topdown_node nodes_{index}[] = {{")
    for name, node in table.nodes.items():
        parent = -1 if node["parent"] == "top" else order.index(node["parent"])
        other, share = (order.index(node["or"][0]), node["or"][1]) if node["or"] else (-1, 0)
        means, helps = meanings[node["title"]]
        out.append(f"\t{{{quote(name)}, {quote(node['title'])}, {quote(node['value'])}, {parent}, {node['level']}, "
                   f"TOPDOWN_{node['unit'].upper()}, {node['over']:g}, {other}, {share:g}, "
                   f"{str(node['with_parent']).lower()},\n\t {quote(means)},\n\t {quote(helps)}}},")
    out.append("};")
    return (f"\t{{{quote(table.fields['set'])}, {quote(table.fields['cpu'])}, {quote(table.fields['pmu'])}, "
            f"TOPDOWN_{vendor.upper()}, {table.fields['width']}, "
            f"{str('own-thresholds' in table.fields).lower()}, {str('percore' in table.fields).lower()}, "
            f"{str(any(kind == 'closed' and whole == '1' for kind, whole, _ in table.sums)).lower()},\n\t "
            + ", ".join(f"{what}_{index}, ARRAY_LEN({what}_{index})" for what in ("events", "aliases", "lets", "nodes"))
            + "},")


PAGE = """# The trees of `culprit topdown`

Generated from `data/topdown/*.txt` by `tools/compile-topdown.py --page`; a test holds this page to them. What marks,
states and errors mean stands in [topdown.md](topdown.md).

The name of a section is what every output shows as the formula set. Names in capitals are defined above each table,
`[Name]` is the value of another node, the rest are events as the vendor spells them, with `:c6` for a counter mask of 6
and `:e1` for counting edges. Shares of slots add up; those of cycles, operations and stalls are of something else.
A threshold "& parents" is one that the vendor ties to those above; culprit asks that of every mark.
"""


def formula_text(table, formula):
    def readable(m):
        word = plain(m.group())
        if word in table.nodes:
            return f"[{table.nodes[word]['title']}]"
        return table.events[word][0].lower() if word in table.events else word
    return "`" + NAME.sub(readable, formula).replace("|", "\\|") + "`"


def section(table, out):
    out.append(f"\n## {table.fields['set']}\n")
    out.append(f"`--cpu {' '.join(table.fields['cpu'].split())}`, {table.fields['width']} slots a cycle"
               + (", thresholds of our own: the vendor publishes none" if "own-thresholds" in table.fields else "")
               + (", of whole cores when SMT is on" if "percore" in table.fields else "") + "\n")
    for name in sorted(table.lets):
        out.append(f"- {name} = {formula_text(table, table.lets[name])}")
    out.append("\n| node | of | over | formula |\n|---|---|---|---|")

    def walk(parent):
        for node in table.nodes.values():
            if node["parent"] == parent:
                over = f"{node['over'] * 100:g}%" + (" & parents" if node["with_parent"] else "")
                if node["or"]:
                    over += f", or {table.nodes[node['or'][0]]['title']} {node['or'][1] * 100:g}%"
                out.append(f"| {'&emsp;' * (node['level'] - 1)}{node['title']} | {node['unit']} | {over} "
                           f"| {formula_text(table, node['value'])} |")
                walk(node["title"].lower())
    walk("top")
    for kind, whole, parts in table.sums:
        left = "100%" if whole == "1" else table.nodes[whole]["title"]
        out.append(("\n" if (kind, whole, parts) == table.sums[0] else "")
                   + f"- {left} {'is' if kind == 'closed' else 'is about'} "
                   + " + ".join(table.nodes[part]["title"] for part in parts))


def page(tables, meanings):
    out = [PAGE.rstrip("\n")]
    for table in tables:
        section(table, out)
    out.append("\n## What the nodes mean\n\n| node | meaning | what usually helps |\n|---|---|---|")
    for name in sorted(meanings, key=str.lower):
        out.append(f"| {name} | {meanings[name][0]} | {meanings[name][1]} |")
    return "\n".join(out) + "\n"


def main():
    args = sys.argv[1:]
    mode = args.pop(0) if args[0].startswith("--") else "--compile"
    out, meanings, tables = args[0], read_meanings(args[1]), [Table(path) for path in args[2:]]
    cpus = set()
    for table in tables:
        table.check(meanings, mode == "--compile")  # the build has tried the sums of a page
        for cpu in table.fields["cpu"].split():
            if cpu in cpus:
                table.fail(f"the CPU {cpu} is in two tables")
            cpus.add(cpu)
    unused = set(meanings) - {node["title"] for table in tables for node in table.nodes.values()}
    if unused:
        raise Wrong(f"{args[1]}: no table has {', '.join(sorted(unused))}")
    if mode == "--page":
        with open(out, "w", encoding="ascii") as file:
            file.write(page(tables, meanings))
        return
    if mode == "--check-page":
        with open(out, encoding="ascii") as file:
            if file.read() != page(tables, meanings):
                raise Wrong(f"{out} is not current: tools/compile-topdown.py --page writes it anew")
        print(f"{out}: {len(tables)} trees, current")
        return
    text = ["/* Generated by tools/compile-topdown.py from data/topdown. */", '#include "base/util.h"',
            '#include "events/topdown.h"', ""]
    rows = [emit(table, index, meanings, text) for index, table in enumerate(tables)]
    text += ["const struct topdown_table topdown_tables[] = {", *rows, "};",
             "const size_t topdown_tables_len = ARRAY_LEN(topdown_tables);", ""]
    with open(out, "w", encoding="ascii") as file:
        file.write("\n".join(text))


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        sys.exit(str(wrong))
