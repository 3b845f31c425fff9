#!/bin/bash
# culprit convert: formats in and out, what other tools make of the output, and damaged input.
. "$(dirname "$0")/lib.sh"
plan_begin

data=${CULPRIT_TEST_DATA:-}

printf 'main;parse;read_[k] 3\nmain;parse 2\r\n\n# a remark\nmain;work;fast_[i] 5\nno count here\n' >in.folded
printf 'main;parse 2\nmain;parse;read_[k] 3\nmain;work;fast_[i] 5\n' >want.folded
check "folded to pprof" "$CULPRIT" convert in.folded -o out.pb.gz
check_match "bad lines are counted" '1 of 4 lines left out; the first is line 6: no count' "$CULPRIT" convert in.folded -o out.pb.gz
check "pprof back to folded" "$CULPRIT" convert out.pb.gz -o back.folded --annotate
check "nothing was lost on the way" cmp want.folded back.folded
check "without marks the names stand alone" bash -c "'$CULPRIT' convert out.pb.gz -o - --to folded | grep -qx 'main;parse;read 3'"
check "the same input gives the same bytes" bash -c "'$CULPRIT' convert out.pb.gz --to pprof | cmp - out.pb.gz"
check "a raw message" bash -c "'$CULPRIT' convert out.pb.gz --output out.pb && gzip -dc out.pb.gz | cmp - out.pb"
check "a raw message is read" bash -c "'$CULPRIT' convert out.pb --to folded --annotate | cmp - want.folded"
check "--to overrides the ending" bash -c "'$CULPRIT' convert out.pb -o x.txt --to pprof-raw && cmp x.txt out.pb"
check "several gzip members" bash -c "(head -c 40 out.pb | gzip -c; tail -c +41 out.pb | gzip -c) | '$CULPRIT' convert - --to folded --annotate | cmp - want.folded"
if have zstd; then
	check "zstd" bash -c "zstd -qc out.pb | '$CULPRIT' convert - --to folded --annotate | cmp - want.folded"
else
	skip "zstd" "no zstd program"
fi
check "a pipe to a pipe" bash -c "cat in.folded | '$CULPRIT' convert - --to pprof 2>/dev/null | cmp - out.pb.gz"
check "compressed folded text" bash -c "gzip -c want.folded | '$CULPRIT' convert - --to folded --annotate | cmp - want.folded"
check "--from" "$CULPRIT" convert --from folded in.folded -o x.pb.gz
check_fails "--from that does not fit" 'in.folded: ' "$CULPRIT" convert --from pprof in.folded -o x.pb.gz
check_fails "unknown --from" 'recording, pprof, folded, legacy, perf-script, speedscope or firefox' "$CULPRIT" convert --from jfr in.folded -o x.pb.gz
check_fails "unknown --to" 'pprof, pprof-raw, folded' "$CULPRIT" convert in.folded -o x --to png
check_fails "an ending that tells nothing" 'say --to' "$CULPRIT" convert in.folded -o x.dat
check_fails "no output" 'say where to' "$CULPRIT" convert in.folded
check_fails "no input" 'which file' "$CULPRIT" convert -o x.folded
check_fails "two inputs" 'one input' "$CULPRIT" convert in.folded in.folded -o x.folded

printf 'main;a 1 2\nmain;b 0 5\n' >diff.folded
check "two columns stay two" bash -c "'$CULPRIT' convert diff.folded -o d.pb.gz && '$CULPRIT' convert d.pb.gz --to folded | cmp - diff.folded"
check_match "--value picks one" '^main;a 1$' "$CULPRIT" convert d.pb.gz --to folded --value before
check_fails "--value that is not there" 'before after' "$CULPRIT" convert d.pb.gz --to folded --value heap
for root in none comm pid tid; do
	check "--root $root without such labels" bash -c "'$CULPRIT' convert out.pb --to folded --annotate --root $root | cmp - want.folded"
done
check_match "--help" '^Usage: culprit convert' "$CULPRIT" convert --help
check_fails "unknown --root" 'none, comm, pid or tid' "$CULPRIT" convert out.pb --to folded --root host

check "speedscope" "$CULPRIT" convert out.pb.gz -o out.speedscope.json
if have python3; then
	check "speedscope: weights and frames add up" python3 - <<-'EOF'
		import json
		d = json.load(open("out.speedscope.json"))
		p = d["profiles"][d["activeProfileIndex"]]
		names = [f["name"] for f in d["shared"]["frames"]]
		stacks = {";".join(names[i] for i in s): w for s, w in zip(p["samples"], p["weights"])}
		assert stacks == {"main;parse;read": 3, "main;parse": 2, "main;work;fast": 5}, stacks
		assert p["type"] == "sampled" and p["endValue"] == 10 and p["startValue"] == 0
	EOF
else
	skip "speedscope: weights and frames add up" "no python3"
fi

check "a flame graph as SVG" bash -c "'$CULPRIT' convert out.pb.gz -o out.svg && grep -q 'parse' out.svg && head -c 200 out.svg | grep -q '<svg\|<?xml'"
check "a flame graph as HTML" bash -c "'$CULPRIT' convert out.pb.gz -o out.html && grep -qi '</html>' out.html"
check "a difference as a flame graph" bash -c "'$CULPRIT' convert diff.folded --to svg | grep -q '</svg>'"
check "--root names the processes of a flame graph" "$CULPRIT" convert out.pb.gz --root pid -o pid.svg

# Profiles of gperftools, and what google-pprof makes of them.
check "to gperftools" "$CULPRIT" convert want.folded -o out.prof
check "--to gperftools" bash -c "'$CULPRIT' convert want.folded --to gperftools | cmp - out.prof"
check "gperftools back to folded" bash -c "'$CULPRIT' convert out.prof --to folded --value samples | cmp - <(sed 's/_\[[ki]\]//' want.folded)"
check "--from legacy" bash -c "'$CULPRIT' convert out.prof --from legacy --to folded --value samples | grep -qx 'main;parse 2'"
printf 'goroutine profile: total 3\n2 @ 0x1001 0x2001\n#\t0x1000\tmain.wait+0x10\t/src/main.go:7\n#\t0x2000\tmain.main+0x20\t/src/main.go:3\n\n1 @ 0x2001\n' >go.txt
printf 'main.main 1\nmain.main;main.wait 2\n' >go.want
check "goroutines of Go, with names" bash -c "'$CULPRIT' convert go.txt --to folded | cmp - go.want"

# Self and total of every function in folded text, names cut as google-pprof cuts them.
functions_of_folded() {
	perl -ne '
		chomp; my ($stack, $n) = /^(.*) (\d+)$/ or die; my %seen; my @names = split /;/, $stack;
		for (@names) {
			1 while s/\([^()]*\)(\s*const)?//; s/<[0-9a-f]*>$//; 1 while s/<[^<>]*>//;
			s/^.*\s(\w+::)/$1/; $total{$_} += $n unless $seen{$_}++;
		}
		$self{$names[-1]} += $n;
		END { printf "%d %d %s\n", $self{$_} // 0, $total{$_}, $_ for sort keys %total }' | sort
}
functions_of_google() { # FILE
	google-pprof --text "$1" 2>google.err | perl -ne 'print "$1 $2 $3\n" if /^\s*(\d+)\s+\S+%\s+\S+%\s+(\d+)\s+\S+% (.*)$/' | sort
}
same_in_google() { # NAME FILE VALUE
	"$CULPRIT" convert "$2" -o google.prof --value "$3" &&
		"$CULPRIT" convert "$2" --to folded --value "$3" --root none | functions_of_folded >ours &&
		functions_of_google google.prof >theirs && [ -s theirs ] || {
		not_ok "$1" "$(cat google.err)"
		return
	}
	check "$1" diff ours theirs
}
if ! have google-pprof || ! have perl || ! have objdump; then
	skip "google-pprof reads what is written" "needs google-pprof, perl and objdump"
else
	same_in_google "google-pprof: totals of every function" want.folded samples
	printf 'main;one;two 4\n' >single.folded
	same_in_google "google-pprof: a single stack keeps its second frame" single.folded samples
	printf 'main;ns::operator--(int);b 4\nmain;[kernel];<x> 2\n  ;c 1\n' >odd.folded
	"$CULPRIT" convert odd.folded -o odd.prof
	check "google-pprof: names of dashes" bash -c "google-pprof --text odd.prof 2>/dev/null | grep -q 'ns::operator- -$'"
	check "and back" bash -c "'$CULPRIT' convert odd.prof --to folded --value samples | grep -qxF 'main;ns::operator--(int);b 4'"
	if [ -z "$data" ]; then
		skip "google-pprof: real profiles" "no CULPRIT_TEST_DATA"
	else
		for file in "$data"/sampling/pprof/parca/*.pb.gz; do
			"$CULPRIT" convert "$file" -o real.pb >/dev/null 2>&1 || continue
			"$CULPRIT" convert "$file" --to folded --value samples >/dev/null 2>&1 || continue
			same_in_google "google-pprof: ${file##*/}" "$file" samples
		done
	fi
fi
if [ -z "$data" ]; then
	skip "legacy profiles of other programs" "no CULPRIT_TEST_DATA"
else
	count=0
	wrong=
	for file in "$data"/sampling/pprof/*.{cpu,heap,thread,contention} "$data"/profiles/google_pprof/pprof-or-legacy/*; do
		case $file in *no_samples_type | *.crash | */internal__proftest*) continue ;; esac
		count=$((count + 1))
		"$CULPRIT" convert "$file" -o legacy.pb 2>error && "$CULPRIT" convert legacy.pb --to folded >/dev/null || wrong="$wrong $file: $(cat error)"
	done
	if [ -z "$wrong" ] && [ "$count" -gt 10 ]; then ok "$count legacy profiles of other programs"; else not_ok "legacy profiles of other programs" "$count read, wrong:$wrong"; fi
fi
printf '\0\0\0\0\3\0\0\0\0\0\0\0\20\47\0\0\0\0\0\0\1\0\0\0\377\0\0\0' >cut.cpu
check_fails "a cut CPU profile" 'record at byte 20 of the CPU profile is cut off' "$CULPRIT" convert cut.cpu -o cut.pb
check_fails "a difference below 0 is no profile of counts" 'negative' bash -c "printf 'heap profile: 1: 2 [1: 2] @ heapprofile\n-1: -2 [0: 0] @ 0x1\n' | '$CULPRIT' convert - -o x.prof"

# Damaged input: one line, status 1, nothing written.
: >empty
head -c 5000 /dev/urandom >random
check_fails "empty" 'empty: is empty' "$CULPRIT" convert empty -o x.pb
check_fails "random bytes" 'random: ' "$CULPRIT" convert random -o x.pb
check_fails "a directory" 'directory' "$CULPRIT" convert . -o x.pb
check_fails "a missing file" 'No such file' "$CULPRIT" convert missing -o x.pb
check_fails "an ELF object" 'ELF' "$CULPRIT" convert "$CULPRIT" -o x.pb
check_fails "a damaged legacy profile" 'line 2: no sample of a heap profile' bash -c "printf 'heap profile: 1: 2 [3: 4] @ heap/5\nx\n' | '$CULPRIT' convert - -o x.pb"
check "names that look like JSON or XML" bash -c "printf '<a>;b 1\n{x};y 2\n' | '$CULPRIT' convert - --to folded | grep -qx '{x};y 2'"
# JSON: what was written is read again, packed or not, by every command.
printf 'a;b 3\na;k_[k] 4\n' >json.folded
for format in firefox.json firefox.json.gz speedscope.json; do
	check "$format and back" bash -c "'$CULPRIT' convert json.folded -o json.$format && '$CULPRIT' convert json.$format --to folded | diff <(sed 's/_.k.//' json.folded) -"
	check_match "report reads $format" '57.14%.* k' "$CULPRIT" report -i json.$format
done
check "flame reads JSON" bash -c "'$CULPRIT' flame -i json.firefox.json -o json.svg && grep -q '>b<' json.svg"
check "diff reads JSON" "$CULPRIT" diff json.speedscope.json json.firefox.json.gz
check "kinds survive" bash -c "'$CULPRIT' convert json.firefox.json --to folded --annotate | diff json.folded -"
check "--to firefox-gz" bash -c "'$CULPRIT' convert json.folded --to firefox-gz | gzip -dc | grep -q preprocessedProfileVersion"
check_fails "--from firefox: no such profile" 'there are no threads' bash -c "echo '{}' | '$CULPRIT' convert --from firefox - -o x.pb"
check_fails "--from speedscope: damaged" 'byte 14' bash -c "echo '{\"profiles\":[' | '$CULPRIT' convert --from speedscope - -o x.pb"
check_fails "JSON" 'JSON' bash -c "echo '{\"a\": 1}' | '$CULPRIT' convert - -o x.pb"
check_fails "two messages in a row" 'two profiles one after the other' bash -c "cat out.pb out.pb | '$CULPRIT' convert - -o x.pb"
check_fails "two files in a row" 'two profiles one after the other' bash -c "cat out.pb.gz out.pb.gz | '$CULPRIT' convert - -o x.pb"
check_fails "text without counts" 'unknown format' bash -c "echo hello world | '$CULPRIT' convert - -o x.pb"
check_fails "a folder that is not there" 'no-such' "$CULPRIT" convert out.pb -o no-such/x.pb
printf '\012\004\010\001\020\002\062\377\377\377\377\007' >liar
check_fails "a length that lies" 'at byte 6 says .* bytes, only' "$CULPRIT" convert --from pprof liar -o x.pb
head -c 300M /dev/zero | gzip -1 >bomb.gz
check_fails "a bomb stops at the limit" 'more than 192 MB' limited 1500000 "$CULPRIT" convert bomb.gz -o x.pb
check_fails "--max-size lowers it" 'more than 1 MB when' limited 300000 "$CULPRIT" convert bomb.gz --max-size 1M -o x.pb
check_fails "an endless pipe" 'more than 4 MB from a pipe' bash -c "yes 'a;b 1' | '$CULPRIT' convert - --max-size 4M -o x.pb"
check "nothing was written" test ! -e x.pb

size=$(stat -c %s out.pb)
wrong=
for ((cut = 1; cut < size; cut++)); do
	head -c "$cut" out.pb >cut.pb
	output=$(limited 300000 "$CULPRIT" convert cut.pb --from pprof -o cut.out.pb 2>&1)
	status=$?
	# A cut between two fields may leave a smaller, valid message.
	if [ "$status" -gt 1 ] || { [ "$status" -eq 1 ] && [ "$(printf '%s\n' "$output" | wc -l)" -ne 1 ]; }; then
		wrong="$wrong $cut"
	fi
done
if [ -z "$wrong" ]; then ok "cut anywhere: one line or a valid rest"; else not_ok "cut anywhere" "at:$wrong"; fi
size=$(stat -c %s out.pb.gz)
wrong=
for ((cut = 1; cut < size; cut++)); do
	head -c "$cut" out.pb.gz >cut.pb.gz
	"$CULPRIT" convert cut.pb.gz -o x.pb >/dev/null 2>&1
	[ $? -eq 1 ] || wrong="$wrong $cut"
done
if [ -z "$wrong" ]; then ok "a cut gzip is refused"; else not_ok "a cut gzip is refused" "at:$wrong"; fi

# Recordings.
if [ -z "$data" ]; then
	skip "recordings" "no CULPRIT_TEST_DATA"
else
	dir=$data/sampling/perfdata
	check "a recording to pprof" "$CULPRIT" convert "$dir/sleep.data" -o rec.pb.gz
	check "a recording to folded" bash -c "'$CULPRIT' convert '$dir/sleep.data' --to folded --value samples >rec.folded && grep -q '^perf-exec;\|^sleep;' rec.folded"
	check "a recording from a pipe" bash -c "cat '$dir/sleep.data' | '$CULPRIT' convert - --to folded --value samples | cmp - rec.folded"
	check "a recording in gzip" bash -c "gzip -c '$dir/sleep.data' >rec.gz && '$CULPRIT' convert rec.gz --to folded --value samples | cmp - rec.folded"
	check "--root pid and --root tid" bash -c "'$CULPRIT' convert '$dir/sleep.data' --to folded --root tid | grep -qE '^(sleep|perf-exec)-[0-9]+/[0-9]+;'"
	check "--time takes a part" bash -c "'$CULPRIT' convert '$dir/sleep.data' --time ',50%' --to folded --value samples > half; '$CULPRIT' convert '$dir/sleep.data' --time '50%,' --to folded --value samples > rest; [ -s half ] && [ -s rest ] && ! cmp -s half rest"
	check "--tid, --cpu and --cgroup are labels" bash -c "'$CULPRIT' convert '$dir/sleep.data' --tid --cpu --cgroup --to pprof-raw | grep -qa tid"
	check "--no-inline" bash -c "'$CULPRIT' convert '$dir/sleep.data' --no-inline --to folded | grep -q ' [0-9]'"
	check "--no-cache" bash -c "'$CULPRIT' convert '$dir/sleep.data' --no-cache --to folded | grep -q ' [0-9]'"
	check "--no-symbols leaves objects" bash -c "'$CULPRIT' convert '$dir/sleep.data' --no-symbols --to folded | grep -q '\[kernel\|\[libc\|\[ld'"
	check "--comm, --dso and --event let all pass" bash -c "'$CULPRIT' convert '$dir/sleep.data' --comm '*' --dso '*' --event '*' --to folded --value samples | cmp - rec.folded"
	check "--comm keeps what it names" bash -c "! '$CULPRIT' convert '$dir/sleep.data' --comm 'nobody' --to folded 2>/dev/null | grep -q ."
	head -c 1000 "$dir/sleep.data" >cut.data
	check_status "a cut recording is written, with status 3" 3 "$CULPRIT" convert cut.data -o cut.pb.gz
	check_match "and said so" 'warning: cut.data: ' "$CULPRIT" convert cut.data -o cut.pb.gz
	head -c 50 "$dir/sleep.data" >cut.data
	check_fails "a recording that is only a header" '^culprit convert: cut.data: ' "$CULPRIT" convert cut.data -o x.pb
	check_fails "the same from a pipe" '^culprit convert: standard input: [^/]*$' bash -c "cat cut.data | '$CULPRIT' convert - -o x.pb"
fi

# Other tools read what we write, and see the same.
go=$(command -v go || true)
if [ -z "$go" ]; then
	skip "go tool pprof reads it" "no go"
elif ! "$go" tool pprof -top out.pb.gz >top 2>&1; then
	not_ok "go tool pprof reads it" "$(cat top)"
else
	check "go tool pprof: the total" grep -q ' of 10 total' top
	check "go tool pprof: kernel name" grep -q ' read$' top
fi
top_of() { # everything but the name of the file
	"$go" tool pprof -top -nodecount=1000 -sample_index="$2" "$1" 2>/dev/null | grep -vE '^(File|Build ID):'
}
if [ -z "$go" ] || [ -z "$data" ]; then
	skip "real profiles look the same to go tool pprof" "needs go and CULPRIT_TEST_DATA"
else
	count=0
	wrong=
	for file in "$data"/sampling/pprof/parca/*.pb.gz "$data"/profiles/parca-dev_parca/pprof/*.pb.gz; do
		[ -r "$file" ] || continue
		if ! "$CULPRIT" convert "$file" -o real.pb.gz 2>error; then
			wrong="$wrong $file: $(cat error)"
			continue
		fi
		count=$((count + 1))
		[ "$(top_of "$file" 0)" = "$(top_of real.pb.gz 0)" ] || wrong="$wrong $file"
	done
	if [ -z "$wrong" ] && [ "$count" -gt 0 ]; then ok "$count real profiles look the same to go tool pprof"; else not_ok "real profiles look the same to go tool pprof" "$count read, wrong:$wrong"; fi
fi
if [ -z "$data" ]; then
	skip "every pprof file is read or refused with one line" "no CULPRIT_TEST_DATA"
else
	count=0
	wrong=
	while IFS= read -r file; do
		count=$((count + 1))
		"$CULPRIT" convert "$file" -o all.pb.gz >all.out 2>&1
		status=$?
		if [ "$status" -gt 1 ] || [ "$(wc -l <all.out)" -ne "$status" ]; then wrong="$wrong $file"; fi
	done < <(find "$data/profiles" "$data/sampling/pprof" -name '*.pb.gz')
	if [ -z "$wrong" ] && [ "$count" -gt 50 ]; then ok "each of $count pprof files is read or refused with one line"; else not_ok "every pprof file is read or refused with one line" "$count files, wrong:$wrong"; fi
fi

plan_end
