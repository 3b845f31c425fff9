/* Colours of frames. The tints are light, so that dark text is readable on all of them (contrast
 * above 7). */
#include <math.h>
#include <stdio.h>

#include "base/util.h"
#include "view/flamegraph.h"

#define SHADES 16U

struct tint {
	double hue, saturation, lightness; /* degrees, 0..1, 0..1 of the darkest shade */
};

/* Okabe-Ito hues; assets/flame.js has the same table. */
static const struct tint kind_tints[] = {
	[PROFILE_USER] = {203, 0.66, 0.70}, [PROFILE_KERNEL] = {37, 0.88, 0.65},
	[PROFILE_JIT] = {162, 0.42, 0.63},  [PROFILE_VDSO] = {326, 0.48, 0.76},
	[PROFILE_GUEST] = {55, 0.78, 0.66},
};
static const struct tint group_tint = {215, 0.10, 0.82};
static const struct tint hash_tints[] = {
	{203, 0.66, 0.70}, {37, 0.88, 0.65}, {162, 0.42, 0.63}, {326, 0.48, 0.76},
	{55, 0.78, 0.66},  {17, 0.75, 0.73}, {228, 0.52, 0.77}, {90, 0.38, 0.66},
};

uint32_t flamegraph_hash(const char *text)
{
	uint32_t hash = 2166136261U;

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 16777619U;
	/* FNV's low bits of short texts differ little: fold the upper half in. */
	return hash ^ hash >> 15;
}

static double hue_channel(double hue, double low, double high)
{
	hue = fmod(hue + 360, 360);
	if (hue < 60)
		return low + (high - low) * hue / 60;
	if (hue < 180)
		return high;
	if (hue < 240)
		return low + (high - low) * (240 - hue) / 60;
	return low;
}

static void hsl_hex(double hue, double saturation, double lightness, char out[8])
{
	double high = lightness < 0.5 ? lightness * (1 + saturation)
				      : lightness + saturation - lightness * saturation;
	double low = 2 * lightness - high;
	unsigned rgb[3];

	for (int i = 0; i < 3; i++)
		rgb[i] = (unsigned)lround(hue_channel(hue + 120 - 120 * i, low, high) * 255) & 0xff;
	snprintf(out, 8, "#%02x%02x%02x", rgb[0], rgb[1], rgb[2]);
}

void flamegraph_frame_color(const struct tree *tree, uint32_t frame, enum flame_color mode,
			    char out[8])
{
	const struct tree_frame *f = &tree->frames.data[frame];
	uint32_t hash = flamegraph_hash(strtab_text(&tree->strings, f->name));
	uint32_t shade = hash % SHADES, jitter = hash / SHADES % SHADES;
	const struct tint *tint;

	if (f->kind == TREE_KIND_GROUP) {
		tint = &group_tint;
		shade = jitter = 0;
	} else if (mode == FLAME_COLOR_KIND) {
		tint = &kind_tints[f->kind < ARRAY_LEN(kind_tints) ? f->kind : PROFILE_USER];
	} else {
		uint32_t text = mode == FLAME_COLOR_OBJECT ? f->object : f->name;

		tint = &hash_tints[flamegraph_hash(strtab_text(&tree->strings, text)) / 64 %
				   ARRAY_LEN(hash_tints)];
	}
	hsl_hex(tint->hue + (jitter - 7.5) * 0.9, tint->saturation,
		tint->lightness + shade * 0.0075, out);
}

void flamegraph_diff_color(double change, char out[8])
{
	double strength = sqrt(MIN(fabs(change), 1.0));

	if (strength < 0.02)
		snprintf(out, 8, "#e4e4e4");
	else if (change > 0)
		hsl_hex(30, 0.35 + 0.6 * strength, 0.88 - 0.28 * strength, out);
	else
		hsl_hex(206, 0.35 + 0.4 * strength, 0.88 - 0.24 * strength, out);
}
