/* What each run of a live top-down counts: nodes cut into batches that fit the free counters. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "cmd/topdown-live.h"

static void note_lacking(struct live_tree *lt)
{
	for (unsigned i = 0; lt->tree->lacking && i < lt->tree->table->event_count; i++)
		if (lt->tree->lacking[i])
			topdown_set_lacks(&lt->ts, i,
					  lt->tree->table->events[i].no_code
						  ? "how it is counted is told by no file; "
						    "CULPRIT_EVENTS_DIR names a folder of them"
						  : "this core does not have it");
}

int topdown_make_set(struct live *live, struct live_tree *lt, const struct batch *batch,
		     bool *ret_fits, struct err *err)
{
	const struct topdown_machine *machine = live->job->machine;
	const struct topdown_table *table = lt->tree->table;
	struct count_plan_options how = {.exact = live->batched};
	bool wanted[TOPDOWN_EVENTS_MAX] = {false}, together[TOPDOWN_EVENTS_MAX] = {false};
	bool known[NODES_MAX], first = false;
	int r = 0;

	memcpy(known, lt->known, sizeof(known));
	for (int deeper = 0; deeper < 2; deeper++) {
		for (size_t i = 0; i < table->node_count; i++)
			if (batch->nodes[i] && (table->nodes[i].level > 1) == deeper) {
				r |= topdown_add_events(lt->tree, table->nodes[i].name, known,
							wanted);
				first |= !deeper;
			}
		if (!deeper)
			memcpy(together, wanted, sizeof(together));
	}
	r |= topdown_add_events(lt->tree, "CYCLES", known, wanted);
	if (first || !live->batched)
		r |= topdown_add_events(lt->tree, "SLOTS", known, wanted);
	if (batch->cpi || !live->batched)
		r |= topdown_add_events(lt->tree, "INSTRUCTIONS", known, wanted);
	topdown_set_fini(&lt->ts);
	if (r < 0)
		return err_set(err, -ENOMEM, "out of memory");
	r = topdown_set_init(&lt->ts, table, wanted, together, &lt->tree->pmu);
	if (r == 0) {
		note_lacking(lt);
		r = count_plan(&lt->ts.set, machine->ops, machine->ops_ctx, &how);
	}
	*ret_fits = !lt->ts.set.multiplexed && lt->ts.set.passes <= 1;
	return r < 0 ? err_set(err, r, "plan the counters: %s", strerrordesc_np(-r)) : 0;
}

void topdown_batch_known(struct live_tree *lt, const struct batch *batch)
{
	for (size_t i = 0; i < lt->tree->table->node_count; i++)
		lt->known[i] |= batch->nodes[i];
	lt->cpi_known |= batch->cpi;
}

int topdown_cpi_batch(struct live_tree *lt, bool *ret_any, struct err *err)
{
	struct batch batch = {.cpi = true};

	bool counted = lt->cpi_known;

	vec_for_each(&lt->batches, planned)
		counted |= planned->cpi;
	if (counted)
		return 0;
	*ret_any = true;
	return vec_push(&lt->batches, batch) < 0 ? err_set(err, -ENOMEM, "out of memory") : 0;
}

static int push_batch(struct live_tree *lt, const struct batch *batch, struct err *err)
{
	if (vec_push(&lt->batches, *batch) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	topdown_batch_known(lt, batch);
	return 0;
}

/* Everything in one run: with the instructions, or without them when another run will have room. */
static int one_batch(struct live *live, struct live_tree *lt, struct batch *all, bool *ret_fits,
		     struct err *err)
{
	int r;

	all->cpi = !lt->cpi_known;
	r = topdown_make_set(live, lt, all, ret_fits, err);
	if (r == 0 && !*ret_fits && live->batched && all->cpi) {
		all->cpi = false;
		r = topdown_make_set(live, lt, all, ret_fits, err);
	}
	return r;
}

/* Cuts nodes into batches that fit; a node that does not fit alone has passes of its own. */
static int make_batches(struct live *live, struct live_tree *lt, const bool *nodes, struct err *err)
{
	size_t count = lt->tree->table->node_count;
	struct batch all = {.cpi = false}, current = {.cpi = false};
	bool known[NODES_MAX], cpi_known = lt->cpi_known, fits = true, any = false;
	int r;

	memcpy(all.nodes, nodes, count * sizeof(*nodes));
	memcpy(known, lt->known, sizeof(known));
	lt->batches.len = 0;
	r = one_batch(live, lt, &all, &fits, err);
	if (r == 0 && (fits || !live->batched)) {
		current = all;
		any = true;
	}
	for (size_t i = 0; i < count && r == 0 && !any; i++)
		any = nodes[i];
	for (size_t i = 0; i < count && r == 0 && !fits && live->batched; i++) {
		struct batch more = current;
		bool alone = memchr(current.nodes, true, count) == NULL, holds;

		if (!nodes[i])
			continue;
		more.nodes[i] = true;
		r = topdown_make_set(live, lt, &more, &holds, err);
		if (r == 0 && !holds && !alone) {
			r = push_batch(lt, &current, err);
			more = (struct batch){.cpi = false};
			more.nodes[i] = true;
		}
		current = more;
	}
	if (r == 0 && any)
		r = push_batch(lt, &current, err);
	memcpy(lt->known, known, sizeof(known)); /* until they have run */
	lt->cpi_known = cpi_known;
	return r;
}

/* The nodes that the thresholds of these hang on too ("or Heavy_Operations over 10%"). */
static bool add_or_nodes(const struct topdown_table *table, bool *nodes)
{
	bool any = false;

	for (size_t i = 0; i < table->node_count; i++) {
		int other = nodes[i] ? table->nodes[i].or_node : -1;

		any |= other >= 0 && !nodes[other];
		if (other >= 0)
			nodes[other] = true;
	}
	return any;
}

static void level_nodes(const struct topdown_table *table, unsigned level, bool *nodes)
{
	for (size_t i = 0; i < table->node_count; i++)
		nodes[i] = table->nodes[i].level <= level;
}

static int fits_at_once(struct live *live, struct live_tree *lt, const bool *nodes, bool *ret_fits,
			struct err *err)
{
	struct batch batch = {.cpi = false};

	memcpy(batch.nodes, nodes, sizeof(batch.nodes));
	return topdown_make_set(live, lt, &batch, ret_fits, err);
}

/* The deepest of: levels 1 and 2, level 1 with what its thresholds hang on, level 1. */
static int nodes_that_fit(struct live *live, struct live_tree *lt, bool *nodes, struct err *err)
{
	const struct topdown_table *table = lt->tree->table;
	bool fits = false;
	int r;

	level_nodes(table, MIN(2u, topdown_max_level(live->job, table)), nodes);
	add_or_nodes(table, nodes);
	r = fits_at_once(live, lt, nodes, &fits, err);
	if (r < 0 || fits)
		return r;
	level_nodes(table, 1, nodes);
	if (add_or_nodes(table, nodes))
		r = fits_at_once(live, lt, nodes, &fits, err);
	if (r == 0 && !fits)
		level_nodes(table, 1, nodes);
	return r;
}

int topdown_first_batches(struct live *live, struct live_tree *lt, struct err *err)
{
	const struct topdown_options *o = &live->job->options;
	const struct topdown_table *table = lt->tree->table;
	bool asked = o->all || o->level || o->explain || o->nodes || o->no_multiplex;
	bool nodes[NODES_MAX] = {false}, more[NODES_MAX], fits = false;
	int r = 0;

	if (live->drills || !asked) {
		r = nodes_that_fit(live, lt, nodes, err);
	} else {
		level_nodes(table,
			    o->all     ? 99
			    : o->level ? topdown_max_level(live->job, table)
				       : 2,
			    nodes);
		for (size_t i = 0; lt->tree->chosen && i < table->node_count; i++)
			nodes[i] = lt->tree->chosen[i];
		if (o->explain && topdown_node_find(table, o->explain) >= 0)
			nodes[topdown_node_find(table, o->explain)] = true;
		memcpy(more, nodes, sizeof(more));
		if (add_or_nodes(table, more))
			r = fits_at_once(live, lt, more, &fits, err);
		if (fits || live->batched)
			memcpy(nodes, more, sizeof(nodes));
	}
	memcpy(lt->counted, nodes, sizeof(nodes));
	if (r == 0)
		r = make_batches(live, lt, nodes, err);
	if (r == 0 && live->batched && !live->drills && !o->explain)
		r = topdown_cpi_batch(lt, &fits, err);
	return r;
}

/* What lies below the mark; without one, what the thresholds of level 1 hang on too. */
static bool wanted_next(const struct live *live, const struct live_tree *lt, bool *nodes)
{
	const struct topdown_result *result = &lt->tree->rows.data[0].result;
	const struct topdown_table *table = lt->tree->table;
	unsigned deepest = topdown_max_level(live->job, table);
	bool any = false;

	if (result->bottleneck < 0) {
		level_nodes(table, 1, nodes);
		add_or_nodes(table, nodes);
	}
	for (size_t i = 0; i < table->node_count; i++) {
		if (result->bottleneck >= 0)
			nodes[i] = table->nodes[i].parent == result->bottleneck &&
				   table->nodes[i].level <= deepest;
		nodes[i] = nodes[i] && !lt->counted[i];
		any |= nodes[i];
	}
	return any;
}

/* Goes on downwards as long as all of it fits at once. */
static int grow_down(struct live *live, struct live_tree *lt, bool *nodes, struct err *err)
{
	const struct topdown_table *table = lt->tree->table;
	unsigned deepest = topdown_max_level(live->job, table);
	bool more[NODES_MAX], grows = true, fits = false;
	int r = 0;

	while (r == 0 && grows) {
		grows = false;
		memcpy(more, nodes, sizeof(more));
		for (size_t i = 0; i < table->node_count; i++)
			if (!nodes[i] && table->nodes[i].parent >= 0 &&
			    nodes[table->nodes[i].parent] && table->nodes[i].level <= deepest)
				more[i] = grows = true;
		if (grows)
			r = fits_at_once(live, lt, more, &fits, err);
		grows = grows && fits;
		if (r == 0 && grows)
			memcpy(nodes, more, sizeof(more));
	}
	return r;
}

int topdown_next_batches(struct live *live, struct live_tree *lt, bool *ret_any, struct err *err)
{
	bool nodes[NODES_MAX] = {false};
	int r;

	lt->batches.len = 0;
	if (!wanted_next(live, lt, nodes))
		return 0;
	r = grow_down(live, lt, nodes, err);
	for (size_t i = 0; i < lt->tree->table->node_count; i++)
		lt->counted[i] |= nodes[i];
	*ret_any = true;
	return r < 0 ? r : make_batches(live, lt, nodes, err);
}
