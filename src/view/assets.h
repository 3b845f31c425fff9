/* The files of view/assets/, built into the program by tools/embed.py. Each ends with a NUL that
 * its size does not count. */
#pragma once

#include <stddef.h>

extern const char asset_flame_html[], asset_flame_css[], asset_flame_js[], asset_flame_tree_js[],
	asset_svg_css[], asset_svg_js[];
extern const size_t asset_flame_css_size, asset_flame_js_size, asset_flame_tree_js_size,
	asset_svg_css_size, asset_svg_js_size, asset_flame_html_size;
