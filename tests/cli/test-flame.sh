#!/bin/bash
# culprit flame: every option; names that try to break out; structure of both documents.
. "$(dirname "$0")/lib.sh"
plan_begin

printf '%s\n' 'main;parse;read_[k] 10' 'main;parse 20' 'main;work;inner 50' 'main;</script><script>x()</script> 15' > stacks.folded
printf 'evil \033[31m\016 \377\376 <&"name;leaf 5\n' >> stacks.folded
printf '%s\n' 'main;parse 60' 'main;work;inner 40' > old.folded

flame() { "$CULPRIT" flame "$@"; }

check_match "writes flame.html and says where" '^flame.html: .* KB' flame -i stacks.folded
check "the page is there" test -s flame.html
check_match "no network: the policy" "default-src 'none'" cat flame.html
[ "$(grep -cE 'https?://|src=|@import|url\(' flame.html)" -eq 0 ] && ok "the page refers to nothing outside" || not_ok "the page refers to nothing outside" "$(grep -oE '.{20}(https?://|src=|@import|url\().{20}' flame.html)"
[ "$(grep -o '</script>' flame.html | wc -l)" -eq 3 ] && ok "a name cannot end the data" || not_ok "a name cannot end the data"
if have python3; then
	check "the data is JSON that adds up" python3 - <<-'EOF'
		import json, re
		page = open("flame.html", encoding="utf-8").read()
		data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))
		assert sum(data["self"]) == 100, sum(data["self"])
		assert len(data["up"]) == len(data["frame"]) == len(data["self"]) == 9, len(data["up"])
		names = [data["strings"][i] for i in data["names"]]
		assert "</script><script>x()</script>" in names, names
		assert any("\ufffd" in name for name in names) and not any(c < " " for name in names for c in name), names
	EOF
else
	skip "the data is JSON that adds up" "no python3"
fi

check "-o FILE.svg" flame -i stacks.folded -o out.svg
if have python3; then
	check "SVG: well-formed, widths and places are right" python3 - <<-'EOF'
		import xml.etree.ElementTree as ET
		svg = ET.parse("out.svg").getroot()
		ns = "{http://www.w3.org/2000/svg}"
		assert svg.get("role") == "img"
		frames = {}
		for g in svg.iter(ns + "g"):
		    if g.get("class") == "f":
		        title = g.find(ns + "title").text
		        frames[title.split("\n")[0]] = (g, float(g.find(ns + "rect").get("width")), title)
		assert len(frames) == 9, list(frames)
		assert abs(frames["all"][1] - 1176) < 1
		assert abs(float(frames["work"][0].get("data-w")) - 0.5) < 1e-6
		assert abs(frames["work"][1] - 588) < 1
		assert frames["work"][0].get("data-d") == "2"
		assert "50 samples, 50.00% of all, 52.63% of parent; self 0" in frames["work"][2], frames["work"][2]
		fills = {n: f[0].find(ns + "rect").get("fill") for n, f in frames.items()}
		assert fills["read"] != fills["parse"]
	EOF
else
	skip "SVG: well-formed, widths and places are right" "no python3"
fi

flame --input stacks.folded --output - --format svg > piped.svg
check "-o - --format svg is the same" cmp piped.svg out.svg
check "--format html" sh -c '"$CULPRIT" flame -i stacks.folded -o - --format html | grep -q "<!DOCTYPE html>"'
check_fails "--format png" "'png' is not svg or html" flame -i stacks.folded --format png
check "--title is escaped" sh -c '"$CULPRIT" flame -i stacks.folded -o - --title "a <b>" | grep -q "<title>a &lt;b&gt;</title>"'
check_match "--width" 'width="800"' flame -i stacks.folded -o - --format svg --width 800
check_fails "--time of folded stacks" 'only recordings tell times' flame -i stacks.folded --time ',50%'
check_fails "--width 5" 'must be 300' flame -i stacks.folded --width 5
check_match "--min-share merges and counts" '2 frames too narrow' flame -i stacks.folded -o - --format svg --min-share 8
check_match "--min-share in HTML" '"hidden":2' flame -i stacks.folded -o - --min-share 8
check_fails "--min-share 200" 'percentage' flame -i stacks.folded --min-share 200
root_y() { grep -A8 'data-d="0"' "$1" | sed -nE 's/.*<rect x="[^"]*" y="([0-9]+)".*/\1/p' | head -1; }
flame -i stacks.folded -o icicle.svg --inverted > /dev/null
[ "$(root_y icicle.svg)" -lt "$(root_y out.svg)" ] && ok "--inverted: the root is at the top" || not_ok "--inverted: the root is at the top" "$(root_y icicle.svg) $(root_y out.svg)"
check_match "--inverted in HTML" '"icicle":true' flame -i stacks.folded -o - --inverted
flame -i stacks.folded -o up.svg --bottom-up > /dev/null
check_match "--bottom-up: leaves first" 'data-w="0.50000000" data-d="1"><title>inner' cat up.svg
check_fails "--bottom-up of a page" 'button' flame -i stacks.folded --bottom-up
check_match "--color object" '"color":"object"' flame -i stacks.folded -o - --color object
check_match "--color name" 'class="f"' flame -i stacks.folded -o - --format svg --color name
check_fails "--color pink" "'pink' is not" flame -i stacks.folded --color pink
check_match "--event" '"unit":"samples"' flame -i stacks.folded -o - --event samples
check_fails "--event that is not there" "no value type" flame -i stacks.folded --event cycles
check_fails "--comm without samples" 'no sample to draw of a command' flame -i stacks.folded --comm nobody
check_match "--by-comm" '\[unknown\]' flame -i stacks.folded -o - --by-comm
check "--no-inline" flame -i stacks.folded -o - --no-inline
check "--no-demangle" flame -i stacks.folded -o - --no-demangle
check "--no-cache" flame -i stacks.folded -o - --no-cache
check "--debuginfod" flame -i stacks.folded -o - --debuginfod 1
check_fails "--max-size limits pipes" 'max-size' sh -c 'cat stacks.folded | "$CULPRIT" flame -i - --max-size 16'
check_match "--base: the page compares" '"diff":true' flame -i stacks.folded --base old.folded -o -
check_match "--base: the SVG says the change" 'points against the base' flame -i stacks.folded --base old.folded -o - --format svg
printf '%s\n' 'main;parse 60 20' 'main;work 40 80' > two.folded
check_match "two counts a line are a comparison" '[+]40.00 points against the base [(]40.00%[)]' flame -i two.folded -o - --format svg
check_fails "a --base that is not there" 'absent' flame -i stacks.folded --base absent
check_fails "an output that cannot be written" 'no/such' flame -i stacks.folded -o no/such/dir.html
check_fails "no such input" 'absent' flame absent
: > empty
check "--help" flame --help
check_fails "an empty input" 'is empty' flame -i empty

# Frames, depths and widths against SVGs that another tool made from the same stacks.
cat > compare.py <<'EOF'
import collections, re, sys
import xml.etree.ElementTree as ET
NS = "{http://www.w3.org/2000/svg}"
ours, peer = collections.Counter(), collections.Counter()
for g in ET.parse(sys.argv[1]).getroot().iter(NS + "g"):
    if g.get("class") == "f":
        ours[g.find(NS + "title").text.split("\n")[0], int(g.get("data-d")), round(float(g.get("data-w")) * 100, 2)] += 1
rows = []
for g in ET.parse(sys.argv[2]).getroot().iter(NS + "g"):
    title, rect = g.find(NS + "title"), g.find(NS + "rect")
    match = title is not None and rect is not None and re.match(r"(.*) \([\d,.]+ [^,]+, [\d.]+%", title.text or "", re.S)
    if match:
        rows.append((re.sub(r"_\[[kji]\]$", "", match[1]), int(float(rect.get("y"))), round(float(rect.get("width")[:-1]), 2)))
bottom, pitch = max(row[1] for row in rows), 16
for name, y, width in rows:
    peer[name, (bottom - y) // pitch, width] += 1
missing = []
for (name, depth, width), times in peer.items():
    have = sum(n for (a, d, w), n in ours.items() if a == name and d == depth and abs(w - width) < 0.02)
    if have < times:
        missing.append((name, depth, width))
print(len(rows), "frames,", len(missing), "missing:", missing[:5])
sys.exit(len(missing) > 0 or len(rows) < 10)
EOF
while read -r stacks peer; do
	source=${CULPRIT_TEST_DATA:-/nonexistent}/sampling/flamegraph_svg
	if [ ! -r "$source/$stacks" ] || ! have python3; then
		skip "frames and widths of $peer" "no test data or no python3"
		continue
	fi
	flame -i "$source/$stacks" -o ours.svg --min-share 0 > /dev/null 2> /dev/null
	check "frames and widths of $peer" python3 compare.py ours.svg "$source/$peer"
done <<EOF
austin/flames.txt austin/flame.svg
grey-frames/grey-frames.txt grey-frames/grey-frames.svg
narrow-blocks/narrow-blocks.txt narrow-blocks/narrow-blocks.svg
differential/perf-cycles-instructions-01-collapsed-all-diff.txt differential/diff.svg
EOF

plan_end
