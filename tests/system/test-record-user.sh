#!/bin/bash
# culprit record as an ordinary user, under each level of kernel.perf_event_paranoid, with little lockable memory,
# few descriptors, and under a seccomp filter. Needs root, to become that user and to set the levels.
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

PROGRAMS=${CULPRIT_TEST_PROGRAMS:?set CULPRIT_TEST_PROGRAMS to the folder of tests/programs}
READER="$TESTS_DIR/tools/perfdata.py"
PARANOID=/proc/sys/kernel/perf_event_paranoid MLOCK=/proc/sys/kernel/perf_event_mlock_kb KPTR=/proc/sys/kernel/kptr_restrict

if [ "$(id -u)" -ne 0 ] || ! have setpriv || ! [ -w $PARANOID ]; then
	skip "recording as an ordinary user" "becoming one needs root, setpriv and a writable /proc/sys"
	plan_end
	exit
fi
old_paranoid=$(cat $PARANOID) old_mlock=$(cat $MLOCK) old_kptr=$(cat $KPTR)
trap 'status=$?; echo $old_paranoid >$PARANOID; echo $old_mlock >$MLOCK; echo $old_kptr >$KPTR; cd /; rm -rf "$TEST_TMP"; exit $status' EXIT
cp "$CULPRIT" culprit
cp "$PROGRAMS/shares" .
cp "$READER" .
mkdir -m 777 home
chmod 755 . culprit shares
cd home || exit 99
user() { env -u XDG_CACHE_HOME HOME="$PWD" setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all -- "$@"; }
holds() { check "$1" python3 ../perfdata.py "$2" "$3"; }

echo 2 >$PARANOID
check_match "paranoid 2: it records user space and says why only that" "only user space: kernel.perf_event_paranoid" \
	user ../culprit record -g -o out -- ../shares 0.3
holds "paranoid 2: samples of user space" out 'd.attrs[0]["exclude_kernel"] and len(d.samples) > 300 and all(s["user"] for s in d.samples) and any(m["path"].endswith("/shares") for m in d.maps)'
check_fails "paranoid 2: the whole machine is refused with setting, value and remedy" \
	"kernel.perf_event_paranoid is 2, .*whole machine needs 0 or less.*sysctl kernel.perf_event_paranoid=0" user ../culprit record -a -d 100ms -o out
check_fails "paranoid 2: the kernel is refused with setting and value" "kernel.perf_event_paranoid is 2.*needs 1 or less" \
	user ../culprit record -e cpu-clock:k -o out -- true
check_fails "paranoid 2: another user's process" "process 1 belongs to another user|perf_event_paranoid" user ../culprit record -p 1 -d 100ms -o out
echo 4 >$PARANOID
if user ../culprit record -q -o out -- true 2>/dev/null; then
	ok "paranoid 4: this kernel treats it as 2"
else
	check_fails "paranoid 4: named" "perf_event_paranoid is 4" user ../culprit record -o out -- true
fi
echo 1 >$PARANOID
echo 0 >$KPTR
user ../culprit record -q -g -e cpu-clock -F 5000 -o out -- dd if=/dev/zero of=/dev/null bs=64k count=30000 2>/dev/null
holds "paranoid 1: kernel samples too" out 'any(not s["user"] for s in d.samples)'
echo 2 >$KPTR
rm -rf .cache # names that were readable before
check_match "kptr_restrict 2: setting, value and remedy in one line" "kptr_restrict is 2.*sysctl.*kptr_restrict=" \
	user ../culprit record -g -e cpu-clock -F 5000 -o out -- dd if=/dev/zero of=/dev/null bs=64k count=30000 status=none
echo "$old_kptr" >$KPTR
echo -1 >$PARANOID
# a halted CPU's timer may rest: every CPU gets something to do
for cpu in $(seq 0 $(($(nproc) - 1))); do taskset -c "$cpu" ../shares 1 >/dev/null & done
user ../culprit record -q -a -d 600ms -o out
wait
holds "paranoid -1: the whole machine" out "len({s['cpu'] for s in d.samples}) == $(nproc)"

# rings shrink to what may be locked
echo 2 >$PARANOID
echo 64 >$MLOCK
check_match "rings shrink to kernel.perf_event_mlock_kb and it is said" "ring buffers are only [0-9]+ KiB per CPU: kernel.perf_event_mlock_kb" \
	user prlimit --memlock=0 ../culprit record -o out -- ../shares 0.3
holds "with small rings nothing is lost" out 'd.complete and len(d.samples) > 300 and d.lost == 0'
echo "$old_mlock" >$MLOCK

check "few descriptors: the soft limit is raised" user prlimit --nofile=12:4096 ../culprit record -q -o out -- true
check_fails "too few descriptors: it says so" "too many open files|Too many open files" user prlimit --nofile=8:8 ../culprit record -q -o out -- true

# a folder that cannot be written, a cache that cannot
mkdir -m 755 ../theirs
check_fails "a folder that is not writable" "theirs/out: Permission denied" user ../culprit record -o ../theirs/out -- true
check "without a home the cache is left out quietly" sh -c '[ -z "$(env -i PATH="$PATH" HOME=/nonexistent ../culprit record -q -g -o out -- true 2>&1)" ]'

if have gcc && cat >deny.c <<-'END' && gcc -o deny deny.c 2>/dev/null; then
	#include <errno.h>
	#include <linux/audit.h>
	#include <linux/filter.h>
	#include <linux/seccomp.h>
	#include <stddef.h>
	#include <sys/prctl.h>
	#include <sys/syscall.h>
	#include <unistd.h>
	int main(int argc, char **argv)
	{
		struct sock_filter code[] = {
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_perf_event_open, 0, 1),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		};
		struct sock_fprog program = {4, code};
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) || execv(argv[1], argv + 1);
	}
END
	check_fails "seccomp: named, with the remedy" "seccomp.*(unconfined|profile)" ./deny ../culprit record -o out -- true
	check_fails "seccomp, ordinary user: named" "seccomp" user ./deny ../culprit record -o out -- true
else
	skip "seccomp" "no compiler"
fi

plan_end
