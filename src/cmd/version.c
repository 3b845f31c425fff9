/* culprit version: what this binary is and can do. */
#include <stdio.h>

#include "base/json.h"
#include "cmd/command.h"
#include "cmd/feature.h"
#include "cmd/option.h"

struct version_options {
	bool json;
};

static const struct option_spec version_options[] = {
	OPT_FLAG(0, "json", struct version_options, json, "Print one JSON document."),
	OPT_END,
};

static int version_json(const struct command *self)
{
	struct json json = {0};
	int status;

	json_document(&json, "version");
	json_array(&json, "features");
	for (size_t i = 0; i < features_len; i++) {
		json_object(&json, NULL);
		json_text(&json, "name", features[i].name);
		json_text(&json, "version", features[i].version());
		json_text(&json, "for", features[i].purpose);
		json_end_object(&json);
	}
	json_end_array(&json);
	json_array(&json, "commands");
	for (size_t i = 0; commands[i]; i++)
		json_text(&json, NULL, commands[i]->name);
	json_end_array(&json);
	json_end_object(&json);
	status = cmd_write_stdout(self, json.out.data, json.out.len);
	str_fini(&json.out);
	return status;
}

static int version_run(const struct command *self, int argc, char **argv)
{
	struct version_options options = {0};

	options_parse(self, &options, argc, argv);
	if (options.json)
		return version_json(self);
	printf("culprit %s\n", CULPRIT_VERSION);
	for (size_t i = 0; i < features_len; i++)
		printf("  %-10s %-10s %s\n", features[i].name, features[i].version(),
		       features[i].purpose);
	return cmd_write_stdout(self, "", 0);
}

const struct command command_version = {
	.name = "version",
	.args = "[--json]",
	.summary = "print the version and the features built in",
	.options = version_options,
	.run = version_run,
};
