/*
 * sample.h
 *		What the monitor samples for advice.
 */
#ifndef GOVERNOR_SAMPLE_H
#define GOVERNOR_SAMPLE_H

#include "look.h"

extern void governor_sample_ungated(int session);
extern void governor_sample(const GovernorGateLook *looks);

#endif							/* GOVERNOR_SAMPLE_H */
