/* Decompressors on any bytes: bounded output, errors instead of crashes. The first byte picks one.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/compress.h"

#define OUTPUT_MAX (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str out = {0};

	if (size == 0)
		return 0;
	switch (data[0] % 3) {
	case 0:
		gzip_inflate(data + 1, size - 1, OUTPUT_MAX, &out, NULL);
		break;
	case 1:
		zstd_decompress(data + 1, size - 1, OUTPUT_MAX, &out, NULL);
		break;
	default:
		xz_decompress(data + 1, size - 1, OUTPUT_MAX, &out, NULL);
		break;
	}
	str_fini(&out);
	return 0;
}
