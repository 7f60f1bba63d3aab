/*
 * advice.h
 *		What limit a sampled load suggests.
 */
#ifndef GOVERNOR_ADVICE_H
#define GOVERNOR_ADVICE_H

#include "state.h"

/* Fewer looks, that is less than ten seconds, are too few to judge by. */
#define GOVERNOR_ADVICE_LOOKS_MIN 100

typedef enum GovernorVerdict
{
	GOVERNOR_ADVICE_TOO_SHORT,	/* sampled for too short a time */
	GOVERNOR_ADVICE_NO_LIMIT,	/* a limit would not be met */
	GOVERNOR_ADVICE_CPU,		/* sessions compete for the CPU */
	GOVERNOR_ADVICE_LOCKS,		/* sessions wait for each other's locks */
	GOVERNOR_ADVICE_WAITS,		/* sessions wait for something else than the CPU */
} GovernorVerdict;

typedef struct GovernorAdvice
{
	GovernorVerdict verdict;
	int			limit;			/* 0: none */
} GovernorAdvice;

extern GovernorAdvice governor_advise(const GovernorSample *sample, GovernorClass class, int cores);
extern double governor_advice_share(uint64 part, uint64 whole);

#endif							/* GOVERNOR_ADVICE_H */
