/*
 * Short names of microarchitectures, as --cpu and the tables of events use them. Models from the
 * public mapfiles of the vendors (intel/perfmon mapfile.csv, AMD's PPRs, Arm's part numbers).
 */
#include <string.h>

#include "base/util.h"
#include "host/host.h"

struct range {
	uint8_t first, last; /* of the model number */
	uint8_t stepping_first, stepping_last;
	const char *name;
};

static const struct range intel6[] = {
	{0x1a, 0x1f, 0, 15, "nhm"},   {0x25, 0x25, 0, 15, "wsm"},   {0x2a, 0x2a, 0, 15, "snb"},
	{0x2c, 0x2c, 0, 15, "wsm"},   {0x2d, 0x2d, 0, 15, "jkt"},   {0x2e, 0x2e, 0, 15, "nhm"},
	{0x2f, 0x2f, 0, 15, "wsm"},   {0x37, 0x37, 0, 15, "slm"},   {0x3a, 0x3a, 0, 15, "ivb"},
	{0x3c, 0x3c, 0, 15, "hsw"},   {0x3d, 0x3d, 0, 15, "bdw"},   {0x3e, 0x3e, 0, 15, "ivt"},
	{0x3f, 0x3f, 0, 15, "hsx"},   {0x45, 0x46, 0, 15, "hsw"},   {0x47, 0x47, 0, 15, "bdw"},
	{0x4c, 0x4d, 0, 15, "slm"},   {0x4e, 0x4e, 0, 15, "skl"},   {0x4f, 0x4f, 0, 15, "bdx"},
	{0x55, 0x55, 0, 4, "skx"},    {0x55, 0x55, 5, 15, "clx"},   {0x56, 0x56, 0, 15, "bdx"},
	{0x57, 0x57, 0, 15, "knl"},   {0x5c, 0x5c, 0, 15, "glm"},   {0x5e, 0x5e, 0, 15, "skl"},
	{0x5f, 0x5f, 0, 15, "glm"},   {0x6a, 0x6a, 0, 15, "icx"},   {0x6c, 0x6c, 0, 15, "icx"},
	{0x7a, 0x7a, 0, 15, "glp"},   {0x7d, 0x7e, 0, 15, "icl"},   {0x85, 0x85, 0, 15, "knl"},
	{0x86, 0x86, 0, 15, "snr"},   {0x8c, 0x8d, 0, 15, "tgl"},   {0x8e, 0x8e, 0, 15, "skl"},
	{0x8f, 0x8f, 0, 15, "spr"},   {0x96, 0x96, 0, 15, "ehl"},   {0x97, 0x97, 0, 15, "adl-p"},
	{0x9a, 0x9a, 0, 15, "adl-p"}, {0x9c, 0x9c, 0, 15, "ehl"},   {0x9d, 0x9d, 0, 15, "icl"},
	{0x9e, 0x9e, 0, 15, "skl"},   {0xa5, 0xa6, 0, 15, "skl"},   {0xa7, 0xa7, 0, 15, "rkl"},
	{0xaa, 0xaa, 0, 15, "mtl-p"}, {0xac, 0xac, 0, 15, "mtl-p"}, {0xad, 0xae, 0, 15, "gnr"},
	{0xaf, 0xaf, 0, 15, "srf"},   {0xb5, 0xb5, 0, 15, "arl-p"}, {0xb6, 0xb6, 0, 15, "grr"},
	{0xb7, 0xb7, 0, 15, "adl-p"}, {0xba, 0xba, 0, 15, "adl-p"}, {0xbd, 0xbd, 0, 15, "lnl-p"},
	{0xbe, 0xbe, 0, 15, "adl-e"}, {0xbf, 0xbf, 0, 15, "adl-p"}, {0xc5, 0xc6, 0, 15, "arl-p"},
	{0xcc, 0xcc, 0, 15, "ptl-p"}, {0xcf, 0xcf, 0, 15, "emr"},   {0xdd, 0xdd, 0, 15, "cwf"},
};

static const struct range amd17[] = {
	{0x00, 0x2f, 0, 15, "zen1"},
	{0x30, 0xff, 0, 15, "zen2"},
};

static const struct range amd19[] = {
	{0x00, 0x0f, 0, 15, "zen3"},
	{0x10, 0x1f, 0, 15, "zen4"},
	{0x20, 0x5f, 0, 15, "zen3"},
	{0x60, 0xaf, 0, 15, "zen4"},
};

static const struct range amd1a[] = {
	{0x00, 0x4f, 0, 15, "zen5"},
	{0x50, 0x5f, 0, 15, "zen6"},
	{0x60, 0x7f, 0, 15, "zen5"},
	{0x80, 0xcf, 0, 15, "zen6"},
};

static const struct {
	uint16_t part;
	const char *name;
} arm_parts[] = {
	{0xd03, "a53"}, {0xd05, "a55"}, {0xd07, "a57"}, {0xd08, "a72"}, {0xd09, "a73"},
	{0xd0b, "a76"}, {0xd0c, "n1"},  {0xd40, "v1"},  {0xd41, "a78"}, {0xd49, "n2"},
	{0xd4f, "v2"},  {0xd84, "v3"},  {0xd8e, "n3"},
};

uint64_t host_arm_midr(const char *uarch)
{
	for (size_t i = 0; i < ARRAY_LEN(arm_parts); i++)
		if (strcmp(arm_parts[i].name, uarch) == 0)
			return UINT64_C(0x41) << 24 | 0xf << 16 | (uint64_t)arm_parts[i].part << 4;
	return 0;
}

static const char *find(const struct range *ranges, size_t count, int model, int stepping)
{
	if (stepping < 0)
		stepping = 0;
	for (size_t i = 0; i < count; i++)
		if (model >= ranges[i].first && model <= ranges[i].last &&
		    stepping >= ranges[i].stepping_first && stepping <= ranges[i].stepping_last)
			return ranges[i].name;
	return NULL;
}

const char *host_cpu_uarch(const struct host_cpu_model *model)
{
	if (!model->known)
		return NULL;
	if (model->vendor == CPU_VENDOR_INTEL && model->family == 6)
		return find(intel6, ARRAY_LEN(intel6), model->model, model->stepping);
	if (model->vendor == CPU_VENDOR_INTEL && model->family == 18)
		return "nvl-p";
	if (model->vendor == CPU_VENDOR_AMD && model->family == 0x17)
		return find(amd17, ARRAY_LEN(amd17), model->model, model->stepping);
	if (model->vendor == CPU_VENDOR_AMD && model->family == 0x19)
		return find(amd19, ARRAY_LEN(amd19), model->model, model->stepping);
	if (model->vendor == CPU_VENDOR_AMD && model->family == 0x1a)
		return find(amd1a, ARRAY_LEN(amd1a), model->model, model->stepping);
	if (model->vendor == CPU_VENDOR_ARM && (model->midr >> 24 & 0xff) == 0x41)
		for (size_t i = 0; i < ARRAY_LEN(arm_parts); i++)
			if (arm_parts[i].part == (model->midr >> 4 & 0xfff))
				return arm_parts[i].name;
	return NULL;
}
