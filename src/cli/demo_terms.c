/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/demo.h"

/* Words that both dictionaries have, common and rare ones mixed: some hundred to some thousand hits each. */
static const char *const terms[] = {
        "acid",    "amber",   "anchor",  "angle",   "arrow",   "autumn",  "balance", "barrel",  "beacon", "bird",
        "blade",   "bone",    "book",    "bread",   "bridge",  "bronze",  "butter",  "candle",  "canvas", "castle",
        "cattle",  "chain",   "chalk",   "charm",   "chimney", "circle",  "clay",    "cloud",   "coal",   "coin",
        "copper",  "coral",   "corn",    "cotton",  "court",   "crystal", "cycle",   "dagger",  "dance",  "desert",
        "diamond", "dragon",  "drum",    "dust",    "eagle",   "echo",    "engine",  "feather", "fiber",  "flame",
        "flint",   "flute",   "forest",  "fossil",  "fruit",   "garden",  "glacier", "glass",   "grain",  "granite",
        "gravity", "hammer",  "harbor",  "harvest", "honey",   "horizon", "horse",   "insect",  "iron",   "island",
        "ivory",   "jewel",   "journey", "kettle",  "kingdom", "ladder",  "lantern", "leather", "lemon",  "letter",
        "lever",   "lichen",  "linen",   "lizard",  "magnet",  "maple",   "marble",  "market",  "meadow", "mercury",
        "metal",   "meteor",  "mirror",  "mosaic",  "music",   "needle",  "oasis",   "ocean",   "olive",  "orbit",
        "organ",   "oxygen",  "oyster",  "paper",   "pearl",   "pebble",  "pepper",  "pillar",  "planet", "poetry",
        "pollen",  "prism",   "quartz",  "rabbit",  "raven",   "reptile", "ribbon",  "river",   "rocket", "saddle",
        "salmon",  "scale",   "shadow",  "shell",   "shield",  "silver",  "spider",  "spiral",  "stone",  "sulphur",
        "summer",  "temple",  "thread",  "thunder", "timber",  "tower",   "tunnel",  "valley",  "velvet", "vessel",
        "violin",  "volcano", "walnut",  "weather", "wheat",   "whistle", "willow",  "window",  "winter", "wool",
        "yellow",
};

int demo_terms_write(const char *path)
{
	cleanup_fclose FILE *file = fopen(path, "we");

	if (!file)
		return -errno;
	for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++)
		fprintf(file, "/search?q=%s&n=10\n", terms[i]);
	return fflush(file) == 0 ? 0 : -errno;
}
