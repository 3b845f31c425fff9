/* liblzma is needed only for .gnu_debugdata: loaded on first use, so that start-up does not pay for
 * it. */
#include <dlfcn.h>
#include <errno.h>
#include <lzma.h>
#include <pthread.h>

#include "base/compress.h"
#include "base/util.h"

#define MEMORY_LIMIT_BYTES (UINT64_C(128) << 20)

static __typeof__(&lzma_stream_decoder) decoder_fn;
static __typeof__(&lzma_code) code_fn;
static __typeof__(&lzma_end) end_fn;

static void xz_load(void)
{
	void *library = dlopen("liblzma.so.5", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return;
	decoder_fn = (__typeof__(decoder_fn))dlsym(library, "lzma_stream_decoder");
	code_fn = (__typeof__(code_fn))dlsym(library, "lzma_code");
	end_fn = (__typeof__(end_fn))dlsym(library, "lzma_end");
}

int xz_decompress(const void *data, size_t size, size_t max, struct str *out, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_ret status = LZMA_OK;

	pthread_once(&once, xz_load);
	if (!decoder_fn || !code_fn || !end_fn)
		return err_set(err, -ENOTSUP,
			       "xz: liblzma.so.5 cannot be loaded; install liblzma5");
	if (decoder_fn(&z, MEMORY_LIMIT_BYTES, LZMA_CONCATENATED) != LZMA_OK)
		return err_set(err, -ENOMEM, "xz: cannot start");
	z.next_in = data;
	z.avail_in = size;
	while (status == LZMA_OK && out->len <= max) {
		uint8_t buffer[16384];

		z.next_out = buffer;
		z.avail_out = sizeof(buffer);
		status = code_fn(&z, LZMA_FINISH);
		str_append(out, buffer, sizeof(buffer) - z.avail_out);
	}
	end_fn(&z);
	if (out->len > max)
		return err_set(err, -EFBIG, "xz: larger than %zu bytes when decompressed", max);
	if (status != LZMA_STREAM_END)
		return err_set(err, -EBADMSG, "xz: damaged (status %d)", (int)status);
	return str_status(out);
}
