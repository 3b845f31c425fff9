#!/usr/bin/env python3
"""Makes the recordings of this folder: counts as each core family could have given them.

    make-recordings.py [--check]        writes recorded/CPU.counts; --check: fails when they differ

No machine gave these numbers. For each family a program is imagined (its level 1 and what lies below the largest loss) and
every event of the family's table gets the count that this program would give: level 1 adds up to all slots exactly,
parts are not larger than wholes (stalls behind a cache level are within those behind the level before), and what a
scenario says nothing about gets a small share of the cycles that follows from the event's name alone. So the same files
come out everywhere, every node of every tree has a value, and the tree that must come out is known.
"""
import importlib.util
import os
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
spec = importlib.util.spec_from_file_location("tables", os.path.join(ROOT, "tools", "compile-topdown.py"))
tables = importlib.util.module_from_spec(spec)
sys.dont_write_bytecode = True
spec.loader.exec_module(tables)

CYCLES = 9_876_543_210


RARE = ("offcore_response.", "ocr.", "mem_load_l3_hit_retired.", "ld_blocks.no_sr", "mem_inst_retired.split_loads", "l1d_pend_miss.fb_full")


def small(name):
    """0.02% to 1% of the cycles, by the name; a hundredth of that where each costs many cycles."""
    return int(CYCLES * (2 + zlib.crc32(name.encode()) % 98) / (1_000_000 if name.startswith(RARE) else 10_000))


class Family:
    def __init__(self, table, width, fe, bad, be, ret, **more):
        self.table, self.width, self.more = table, width, more
        self.slots = width * CYCLES
        self.fe, self.bad, self.be = (int(x * self.slots) for x in (fe, bad, be))
        self.ret = self.slots - self.fe - self.bad - self.be
        assert abs(self.ret / self.slots - ret) < 1e-6, table
        self.counts = {}

    def part(self, name, default):
        return self.more.get(name, default)

    def put(self, **counts):
        for name, count in counts.items():
            self.counts[name.replace("__", ".").replace("_c_", ":c").replace("_e1", ":e1")] = int(count)

    def cycles(self, **shares):
        """Shares of the cycles."""
        self.put(**{name: share * CYCLES for name, share in shares.items()})


def intel_common(f):
    c, mis = f.counts, f.part("mispredicts", 0.9)
    misses = f.part("misses", (0.20, 0.12, 0.08, 0.03))  # stalled for memory, behind L1, L2, L3: of the cycles
    mem, l1, l2, l3 = misses
    c["br_misp_retired.all_branches"] = int(0.004 * CYCLES * (1 + 4 * f.bad / f.slots))
    c["machine_clears.count"] = int(c["br_misp_retired.all_branches"] * (1 - mis) / mis)
    c["machine_clears.memory_ordering"] = c["machine_clears.count"] * 6 // 10
    c["int_misc.clears_count"] = c["br_misp_retired.all_branches"] + c["machine_clears.count"] * 11 // 10
    c["int_misc.clear_resteer_cycles"] = int(0.3 * f.bad / f.width)
    f.cycles(cycle_activity__stalls_l1d_miss=l1, cycle_activity__stalls_l2_miss=l2, cycle_activity__stalls_l3_miss=l3,
             memory_activity__stalls_l1d_miss=l1, memory_activity__stalls_l2_miss=l2,
             memory_activity__stalls_l3_miss=l3, exe_activity__bound_on_loads=mem,
             cycle_activity__cycles_mem_any=min(1, mem * 1.3), cycle_activity__cycles_l1d_miss=l1 * 1.2,
             memory_activity__cycles_l1d_miss=l1 * 1.2, exe_activity__bound_on_stores=f.part("stores", 0.01),
             cycle_activity__stalls_total=f.part("stalls", mem + 0.1), arith__divider_active=f.part("divider", 0.01),
             arith__div_active=f.part("divider", 0.01), arith__fpdiv_active=f.part("divider", 0.01) * 0.7,
             exe_activity__exe_bound_0_ports=0.03, exe_activity__1_ports_util=f.part("ports", (0.1,))[0],
             exe_activity__2_ports_util=f.part("ports", (0, 0.12))[1], exe_activity__2_3_ports_util=0.2,
             uops_executed__core_cycles_ge_1=0.7, uops_executed__core_cycles_ge_2=0.5,
             uops_executed__core_cycles_ge_3=0.3, uops_executed__cycles_ge_3=0.3,
             offcore_requests_outstanding__cycles_with_data_rd=min(0.95, l1 * 1.4 + 0.02),
             offcore_requests_outstanding__all_data_rd_c_4=l3 * 0.2,
             offcore_requests_outstanding__all_data_rd_c_12=l3 * 0.2,
             l1d_pend_miss__pending=l1 * 8 + 0.1, mem_load_retired__l1_miss=l1 / 40 + 1e-4,
             mem_load_retired__fb_hit=l1 / 60 + 1e-4, mem_load_completed__l1_miss_any=l1 / 30 + 1e-4,
             mem_load_retired__l2_hit=(l1 - l2) / 20 + 1e-4, mem_load_retired__l3_hit=(l2 - l3) / 120 + 1e-5,
             cpu_clk_unhalted__thread=1, cpu_clk_unhalted__distributed=0.97, cpu_clk_unhalted__ref_tsc=0.8,
             icache_16b__ifdata_stall_c_1_e1=0.002)
    for whole, part, share in (("idq.mite_cycles_any", "idq.mite_cycles_ok", 0.7), ("idq.dsb_cycles_any", "idq.dsb_cycles_ok", 0.8),
                               ("idq.all_mite_cycles_any_uops", "idq.all_mite_cycles_4_uops", 0.7),
                               ("inst_decoded.decoders:c1", "inst_decoded.decoders:c2", 0.8),
                               ("l2_rqsts.all_rfo", "l2_rqsts.rfo_hit", 0.7)):
        c[whole] = int((0.25 if "rfo" not in whole else 0.002) * CYCLES)
        c[part] = int(c[whole] * share)
    instructions = int(0.9 * f.ret)
    c.update({"inst_retired.any": instructions, "mem_inst_retired.all_loads": instructions * 3 // 10,
              "mem_inst_retired.all_stores": instructions // 8, "mem_inst_retired.lock_loads": instructions // 5000,
              "mem_inst_retired.any": instructions * 17 // 40, "br_inst_retired.all_branches": instructions // 6,
              "uops_retired.macro_fused": instructions // 9, "inst_retired.macro_fused": instructions // 9,
              "mem_uop_retired.any": instructions // 2, "uops_executed.thread": f.ret * 11 // 10,
              "uops_executed.x87": f.ret // 2000, "fp_arith_inst_retired.scalar": f.ret // 50,
              "fp_arith_inst_retired.vector": f.ret // 20, "fp_arith_inst_retired2.scalar": f.ret // 900,
              "fp_arith_inst_retired2.vector": f.ret // 800, "inst_retired.nop": f.ret // 300})
    for n, name in enumerate(("add_128", "add_256", "mul_256", "vnni_128", "vnni_256", "shuffles")):
        c["int_vec_retired." + name] = f.ret // (400 + 90 * n)


def skylake(f):
    c = f.counts
    intel_common(f)
    c["uops_retired.retire_slots"] = f.ret
    c["int_misc.recovery_cycles"] = int(0.25 * f.bad / 4)
    c["uops_issued.any"] = f.ret + f.bad - 4 * c["int_misc.recovery_cycles"]
    c["idq_uops_not_delivered.core"] = f.fe
    c["idq_uops_not_delivered.cycles_0_uops_deliv.core"] = int(f.part("latency", 0.6) * f.fe / 4)
    c["inst_retired.any"] = f.ret + c["uops_retired.macro_fused"] - int(f.part("heavy", 0.04) * f.slots)
    c["idq.ms_uops"] = int(0.02 * f.slots)
    c["cpu_clk_unhalted.thread_any"], c["int_misc.recovery_cycles_any"] = CYCLES * 14 // 10, c["int_misc.recovery_cycles"] * 14 // 10
    memory_stalls(f)


def memory_stalls(f):
    """So that Memory_Bound is the share of Backend_Bound that the scenario says."""
    c = f.counts
    all_stalls = (c["cycle_activity.stalls_total"] + c["exe_activity.1_ports_util"] +
                  f.ret / f.slots * c["exe_activity.2_ports_util"] + c["exe_activity.bound_on_stores"])
    c["cycle_activity.stalls_mem_any"] = int(f.part("memory", 0.6) * all_stalls) - c["exe_activity.bound_on_stores"]
    assert c["cycle_activity.stalls_l1d_miss"] <= c["cycle_activity.stalls_mem_any"] <= c["cycle_activity.stalls_total"], f.table


def metrics(f, level2, dropping, clears=0):
    """PERF_METRICS that add up to the slots; dropped operations and clears are moved by the formulas."""
    c = f.counts
    c.update({"slots": f.slots, "topdown-retiring": f.ret, "topdown-fe-bound": f.fe + dropping,
              "topdown-be-bound": f.be - clears, "topdown-bad-spec": f.bad - dropping + clears})
    if level2:
        c.update({"topdown-heavy-ops": int(f.part("heavy", 0.04) * f.slots),
                  "topdown-br-mispredict": int(f.part("mispredicts", 0.9) * f.bad),
                  "topdown-fetch-lat": int(f.part("latency", 0.6) * f.fe) + dropping,
                  "topdown-mem-bound": int(f.part("memory", 0.6) * f.be)})
    c["int_misc.uop_dropping"] = dropping
    c["uops_retired.slots"] = f.ret
    c["uops_issued.any"] = f.ret + f.bad // 2
    c["uops_retired.ms"], c["uops_retired.ms:c1"] = f.ret // 40, f.ret // 130
    c["uops_retired.ms:c1:e1"] = f.ret // 900


def icelake(f):
    c = f.counts
    intel_common(f)
    c["int_misc.clears_count"] = int(0.004 * CYCLES)
    metrics(f, False, f.slots // 400, 5 * c["int_misc.clears_count"])
    c["idq_uops_not_delivered.cycles_0_uops_deliv.core"] = (int(f.part("latency", 0.6) * f.fe) + f.slots // 400) // 5
    c["idq.ms_uops"], c["idq.mite_uops"] = f.slots // 60, f.slots // 5
    c["uops_decoded.dec0"], c["uops_decoded.dec0:c1"] = f.slots // 12, f.slots // 13
    memory_stalls(f)


def golden_cove(f):
    intel_common(f)
    metrics(f, True, f.slots // 500)


def lion_cove(f):
    intel_common(f)
    metrics(f, True, 0)


def atom(f):
    c, all_ = f.counts, ".all_p" if f.table == "cmt" else ".all"
    c.update({"cpu_clk_unhalted.core": CYCLES, "inst_retired.any": int(0.95 * f.ret),
              "topdown_fe_bound" + all_: f.fe, "topdown_be_bound" + all_: f.be, "topdown_retiring" + all_: f.ret,
              "topdown_bad_speculation" + all_: f.bad,
              "topdown_fe_bound.frontend_latency": int(f.part("latency", 0.6) * f.fe),
              "topdown_bad_speculation.mispredict": int(f.part("mispredicts", 0.9) * f.bad),
              "topdown_be_bound.alloc_restrictions": int((1 - f.part("memory", 0.7)) * f.be)})
    c["topdown_fe_bound.frontend_bandwidth"] = f.fe - c["topdown_fe_bound.frontend_latency"]
    c["topdown_bad_speculation.machine_clears"] = f.bad - c["topdown_bad_speculation.mispredict"]


def zen(f):
    c, per_slot, smt = f.counts, "de_no_dispatch_per_slot.", f.slots // 200
    latency = f"{per_slot}no_ops_from_frontend:c{f.width}"
    resync = "resyncs_or_nc_redirects" if f.width == 6 else "bp_redirects.resync"
    c.update({"ls_not_halted_cyc": CYCLES, "ex_ret_instr": int(0.93 * f.ret), "ex_ret_ops": f.ret,
              "de_src_op_disp.all": f.ret + f.bad, per_slot + "no_ops_from_frontend": f.fe, per_slot + "backend_stalls": f.be - smt,
              per_slot + "smt_contention": smt, latency: int(f.part("latency", 0.6) * f.fe / f.width),
              "ex_ret_ucode_ops": int(f.part("heavy", 0.01) * f.ret),
              "ex_no_retire.not_complete": int(0.4 * CYCLES), "ex_ret_brn_misp": int(0.0045 * CYCLES)})
    c["ex_no_retire.load_not_complete"] = int(f.part("memory", 0.6) * c["ex_no_retire.not_complete"])
    c[resync] = int(c["ex_ret_brn_misp"] * (1 / f.part("mispredicts", 0.95) - 1))


def neoverse(f):
    c, corrected = f.counts, f.part("corrected", (0, 0, 0))  # cycles that the formulas take from front and back for a miss
    flush = int(0.012 * CYCLES)
    misses = int(0.004 * CYCLES)
    front, back, ratio = (x * misses * f.width for x in (corrected[0], corrected[1], 1))
    if f.part("flush", False):
        front, back = flush * f.width, 0
    ssf, ssb = f.fe + front, f.be + back
    busy = f.slots - ssf - ssb
    erratum = CYCLES if f.part("erratum", False) else 0
    c.update({"cpu_cycles": CYCLES, "inst_retired": int(0.9 * f.ret), "op_retired": f.ret, "op_spec": int(f.ret * busy / f.ret),
              "stall_slot_frontend": ssf + erratum, "stall_slot_backend": ssb, "stall_slot": ssf + ssb + erratum,
              "stall_frontend": int(0.9 * ssf / f.width), "stall_backend": int(0.92 * ssb / f.width), "br_mis_pred": misses,
              "br_mis_pred_retired": int(0.9 * misses), "br_retired": int(0.15 * f.ret), "stall_frontend_flush": flush})
    front, back = c["stall_frontend"], c["stall_backend"]
    core, mem = int(front * 0.3), int(front * 0.65)
    c.update({"stall_frontend_cpubound": max(core, int(flush * 1.4)), "stall_frontend_flow": core // 5, "stall_frontend_membound": mem,
              "stall_frontend_l1i": mem // 2, "stall_frontend_mem": mem // 5, "stall_frontend_tlb": mem // 4,
              "stall_backend_cpubound": back // 5, "stall_backend_rename": back // 11, "stall_backend_busy": back // 20,
              "stall_backend_membound": back * 3 // 4, "stall_backend_l1d": back // 8, "stall_backend_mem": back * 2 // 5,
              "stall_backend_tlb": back // 7, "stall_backend_st": back // 30})
    assert ratio and c["op_spec"] >= c["op_retired"], f.table


def stalled(f):
    f.counts.update({"cpu_cycles": CYCLES, "inst_retired": int(0.22 * CYCLES * 4), "stall_frontend": int(0.11 * CYCLES),
                     "stall_backend": int(0.52 * CYCLES), "br_mis_pred_retired": int(0.001 * CYCLES), "br_retired": int(0.15 * CYCLES)})


# name of --cpu: what is imagined, who makes the counts, the family
RECORDINGS = {
    "skl": ("a parser: branches that nobody can guess", skylake,
            Family("skl", 4, 0.20, 0.27, 0.13, 0.40, mispredicts=0.95, memory=0.55)),
    "skx": ("a graph in the memory of both sockets", skylake,
            Family("skx", 4, 0.06, 0.03, 0.68, 0.23, memory=0.8, misses=(0.62, 0.55, 0.50, 0.42), stalls=0.75)),
    "icl": ("a large program with flat profile: code misses caches", icelake,
            Family("icl", 5, 0.41, 0.08, 0.19, 0.32, latency=0.8)),
    "spr": ("a list longer than the last cache level", golden_cove,
            Family("spr", 6, 0.04, 0.02, 0.83, 0.11, memory=0.92, misses=(0.84, 0.81, 0.78, 0.69), stalls=0.88)),
    "adl-p": ("a chain of divisions", golden_cove,
              Family("glc", 6, 0.05, 0.02, 0.66, 0.27, memory=0.1, divider=0.55, ports=(0.3, 0.1))),
    "lnl-p": ("a matrix product in vectors", lion_cove,
              Family("lnc", 8, 0.04, 0.01, 0.18, 0.77, heavy=0.02, memory=0.4)),
    "adl-e": ("the same list on the small cores", atom, Family("gmt", 5, 0.06, 0.03, 0.72, 0.19, memory=0.85)),
    "srf": ("a web server: fetch waits for code", atom, Family("cmt", 6, 0.38, 0.09, 0.24, 0.29, latency=0.75)),
    "zen4": ("a build of a compiler: fetch waits for code", zen, Family("zen4", 6, 0.35, 0.12, 0.20, 0.33, latency=0.7)),
    "zen5": ("a hash join larger than the caches", zen, Family("zen5", 8, 0.09, 0.05, 0.62, 0.24, memory=0.88)),
    "n1": ("a database scan: stalled cycles are all that is counted", stalled, Family("n1", 4, 0.1, 0.1, 0.5, 0.3)),
    "n2": ("a web server", neoverse, Family("n2", 5, 0.33, 0.10, 0.22, 0.35, corrected=(1, 3))),
    "n2-r0p1": ("the same on a core that counts a slot a cycle too many", neoverse,
                Family("n2-r0p2", 5, 0.33, 0.10, 0.22, 0.35, corrected=(1, 3), erratum=True)),
    "n3": ("a key-value store with small pages", neoverse, Family("n3", 5, 0.12, 0.06, 0.55, 0.27, flush=True)),
    "v1": ("a game tree: wrong guesses", neoverse, Family("v1", 8, 0.18, 0.26, 0.20, 0.36, corrected=(4, 0))),
    "v2": ("a stencil larger than the caches", neoverse, Family("v2", 8, 0.05, 0.04, 0.66, 0.25, corrected=(1, 3))),
    "v3": ("an interpreter: fetch waits for code", neoverse, Family("v3", 10, 0.42, 0.11, 0.14, 0.33, flush=True)),
}


def text_of(cpu):
    what, fill, f = RECORDINGS[cpu]
    table = tables.Table(os.path.join(ROOT, "data", "topdown", f.table + ".txt"))
    table.check({node["title"]: ("", "") for node in table.nodes.values()}, sums=False)
    fill(f)
    lines = [f"# {cpu}: {what}. Made by make-recordings.py; no machine gave these numbers.", "smt_on 0"]
    if any("#system_tsc_freq" in let for let in table.lets.values()):
        lines.append("system_tsc_freq 2000000000")
    for name in sorted(table.events):
        lines.append(f"{table.events[name][0]} {f.counts.get(name, small(name))}")
    return "\n".join(lines) + "\n"


def main():
    check = sys.argv[1:] == ["--check"]
    stale = []
    for cpu in RECORDINGS:
        path = os.path.join(HERE, "recorded", cpu + ".counts")
        text = text_of(cpu)
        if check:
            with open(path, encoding="ascii") as file:
                stale += [path] if file.read() != text else []
        else:
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
    if stale:
        sys.exit(f"not current: {' '.join(stale)}; make-recordings.py writes them anew")
    print(f"{len(RECORDINGS)} recordings")


if __name__ == "__main__":
    main()
