/*
 * warm.h
 *		With policy "throughput": whether this session keeps its slot for its next
 *		transaction.
 */
#ifndef GOVERNOR_WARM_H
#define GOVERNOR_WARM_H

#include "state.h"

extern void governor_warm_transaction_begins(void);
extern void governor_warm_turn_begins(int gate);
extern void governor_warm_goes_on(void);
extern bool governor_warm_stays(int gate);

#endif							/* GOVERNOR_WARM_H */
