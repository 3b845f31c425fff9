#include "base/vec.h"

#include <stdint.h>
#include <string.h>

int vec_grow(void *data, size_t *cap, size_t need, size_t elem_bytes)
{
	void *old, *grown;
	size_t want;

	if (need <= *cap)
		return 0;
	if (need > SIZE_MAX / 2 / elem_bytes)
		return -ENOMEM;
	want = *cap < 8 ? 8 : *cap * 2;
	if (want < need)
		want = need;
	memcpy(&old, data, sizeof(old));
	grown = realloc(old, want * elem_bytes);
	if (!grown)
		return -ENOMEM;
	memcpy(data, &grown, sizeof(grown));
	*cap = want;
	return 0;
}
