#!/bin/bash
# Names of real programs: fixed and position independent, static, stripped with debug files, deleted and replaced
# while they run, in another mount namespace and root, the vdso, and the kernel's for another user.
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

RUNNING=
restrict=/proc/sys/kernel/kptr_restrict
before=$(cat $restrict)
changed=
trap 'status=$?; [ -z "$changed" ] || echo "$before" >$restrict; kill $RUNNING 2>/dev/null; cd /; rm -rf "$TEST_TMP"; exit $status' EXIT
compiler=
for candidate in "${CC:-cc}" gcc clang; do
	have "$candidate" && compiler=$candidate && break
done
if [ -z "$compiler" ] || ! why=$("$CULPRIT" record -q -o probe -- true 2>&1); then
	skip "names of real programs" "${why:-no C compiler}"
	plan_end
	exit
fi

cat >work.c <<'END'
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
volatile uint64_t sink;
__attribute__((noinline)) void exported_work(uint64_t n) { for (uint64_t i = 0; i < n; i++) sink += i * i; }
__attribute__((noinline)) static void local_work(uint64_t n) { for (uint64_t i = 0; i < n; i++) sink += i ^ 3; }
int main(int argc, char **argv)
{
	clock_t end = clock() + (clock_t)(atof(argv[argc - 1]) * CLOCKS_PER_SEC);
	while (clock() < end) { exported_work(100000); local_work(100000); }
	return 0;
}
END
build() { "$compiler" -O1 -g -fno-omit-frame-pointer -Wl,--build-id "$@" work.c 2>build.log; }

# share FILE PATTERN: percent of the samples in symbols that match
share() {
	"$CULPRIT" report -i "$1" --json --sort symbol 2>report.err |
		python3 -c 'import json,re,sys
print(int(100 * sum(r["self_share"] for r in json.load(sys.stdin)["rows"] if re.fullmatch(sys.argv[1], r["symbol"]))))' "$2"
}

# named NAME FILE: both functions are named and carry nearly everything
named() {
	local both one
	both=$(share "$2" 'exported_work|local_work')
	one=$(share "$2" 'local_work')
	if [ "$both" -ge 90 ] && [ "$one" -ge 25 ]; then ok "$1"; else not_ok "$1" "$("$CULPRIT" report -i "$2" 2>&1)"; fi
}

# unnamed NAME FILE REGEX: no wrong name; a warning that matches
unnamed() {
	local offsets
	offsets=$(share "$2" '.*\+0x[0-9a-f]+')
	if [ "$offsets" -ge 90 ] && grep -qE "$3" report.err; then
		ok "$1"
	else
		not_ok "$1" "want a warning that matches: $3" "$("$CULPRIT" report -i "$2" 2>&1)"
	fi
}

if ! have python3; then
	skip "names of real programs" "python3 is not installed"
	plan_end
	exit
fi

for kind in pie no-pie static static-pie; do
	case $kind in
	pie) options="-pie -fPIE" ;;
	*) options=-$kind ;;
	esac
	# shellcheck disable=SC2086
	if ! build $options -o "$kind"; then
		skip "$kind" "cannot be built here: $(head -n 1 build.log)"
		continue
	fi
	"$CULPRIT" record -q -g -o data -- "./$kind" 0.2
	named "$kind" data
	have objcopy && have strip || continue
	cp "$kind" "$kind-stripped"
	objcopy --only-keep-debug "$kind" "$kind-stripped.debug"
	strip "$kind-stripped"
	cp "$kind-stripped" "$kind-bare"
	objcopy --add-gnu-debuglink="$kind-stripped.debug" "$kind-stripped"
	"$CULPRIT" record -q -g -o data -- "./$kind-stripped" 0.2
	named "$kind, stripped, with a debug file beside it" data
	"$CULPRIT" record -q -g -o data -- "./$kind-bare" 0.2
	unnamed "$kind, stripped, without one" data "$kind-bare: .*(stripped|no symbols).*debug package"
done

# while_runs DATA COMMAND...: records the running process, which lives on; report before and after it ends
start() {
	"$@" &
	RUNNING=$!
	sleep 0.1
}
stop() {
	kill $RUNNING
	wait $RUNNING 2>/dev/null
	RUNNING=
}
build -pie -fPIE -o pie
build -no-pie -o other
cp pie gone
start ./gone 20
rm gone
"$CULPRIT" record -q -g -d 200ms -p $RUNNING -o data
named "deleted while it runs" data
stop
unnamed "deleted, and ended since" data 'gone: No such file .*no copy of build id'
cp pie gone
named "deleted, ended, and back: the build id tells" data

cp pie upgraded
start ./upgraded 20
rm upgraded
cp other upgraded
"$CULPRIT" record -q -g -d 200ms -p $RUNNING -o data
named "replaced while it runs" data
stop
unnamed "replaced, and ended since: no wrong names" data 'upgraded: the file was replaced since .build id'
build -Wl,--build-id=none -pie -fPIE -o upgraded
cp upgraded first
rm upgraded
cp first upgraded
start ./upgraded 20
rm upgraded
cp other upgraded
"$CULPRIT" record -q -g -d 200ms -p $RUNNING -o data
named "replaced while it runs, without a build id" data
stop
unnamed "replaced, without a build id, and ended since: no wrong names" data 'upgraded: was deleted or replaced'

mkdir -p mnt root/bin
cp pie root/bin/inside
if unshare -m true 2>/dev/null; then
	start unshare -m sh -c 'mount -t tmpfs none mnt && cp pie mnt/inside && exec mnt/inside 20'
	sleep 0.2
	"$CULPRIT" record -q -g -d 200ms -p $RUNNING -o data
	named "in another mount namespace" data
	stop
else
	skip "in another mount namespace" "unshare -m is not permitted"
fi
if [ -x static ] && cp static root/bin/ && chroot root /bin/static 0 2>/dev/null; then
	start chroot root /bin/static 20
	"$CULPRIT" record -q -g -d 200ms -p $RUNNING -o data
	named "in another root" data
	stop
else
	skip "in another root" "chroot is not permitted, or no static program"
fi

cat >clock.c <<'END'
#include <time.h>
int main(void)
{
	struct timespec t;
	clock_t end = clock() + CLOCKS_PER_SEC / 5;
	while (clock() < end)
		for (int i = 0; i < 1000; i++)
			clock_gettime(CLOCK_MONOTONIC, &t);
	return 0;
}
END
"$compiler" -O1 -o clock clock.c
"$CULPRIT" record -q -g -o data -- ./clock
if "$CULPRIT" report -i data | grep -q '\[vdso\] .*clock_gettime'; then
	ok "the vdso's functions are named"
	# Its callers are found through it, from copied stacks: the program has no frame pointers.
	"$CULPRIT" record -q --call-graph dwarf,raw -o data -- ./clock
	if "$CULPRIT" convert data --to folded --value samples | awk '
		/gettime/ { all += $NF; if (/;main;/) rooted += $NF }
		END { print rooted " of " all; exit !(all > 20 && rooted >= 0.99 * all) }' >rooted; then
		ok "stacks through the vdso reach main ($(cat rooted))"
	else
		not_ok "stacks through the vdso reach main" "$(cat rooted)"
	fi
elif grep -q 'vdso' /proc/self/maps && [ "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)" != hpet ]; then
	not_ok "the vdso's functions are named" "$("$CULPRIT" report -i data)"
else
	skip "the vdso's functions are named" "no vdso"
fi

"$CULPRIT" record -q -g -o data -- sh -c 'i=0; while [ $i -lt 150 ]; do i=$((i + 1)); (:); done'
"$CULPRIT" report -i data --csv --sort symbol --dso '*kernel*' >mine 2>/dev/null
if [ "$(id -u)" -eq 0 ] && have setpriv && { [ "$before" != 0 ] || echo 1 >$restrict; } 2>/dev/null; then
	changed=1
	chmod 755 . && chmod 644 data
	if [ -n "$(setpriv --reuid=65534 --regid=65534 --clear-groups head -n 1 /proc/kallsyms 2>/dev/null | grep -v '^00*  *')" ] ||
		! setpriv --reuid=65534 --regid=65534 --clear-groups "$CULPRIT" version >/dev/null 2>&1; then
		skip "another user reads the kernel's names" "this binary or kallsyms cannot be set up for nobody"
	else
		setpriv --reuid=65534 --regid=65534 --clear-groups "$CULPRIT" report -i data --csv --sort symbol --dso '*kernel*' >theirs 2>/dev/null
		check "another user, who sees no addresses, reads the same kernel names" cmp mine theirs
	fi
	echo "$before" >$restrict
	changed=
else
	skip "another user reads the kernel's names" "only root can try"
fi

plan_end
