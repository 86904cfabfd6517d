/* SPDX-License-Identifier: Apache-2.0 */
/* The section `failover` of a config file. */
#ifndef TAILOR_CONFIG_FAILOVER_H
#define TAILOR_CONFIG_FAILOVER_H

#include "config/complaint.h"

/* What is absent leaves its field as it is. */
void take_failover(struct validation *validation, const struct file_failover *failover, struct tailor_config *config);

#endif /* TAILOR_CONFIG_FAILOVER_H */
