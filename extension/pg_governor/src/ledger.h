/*
 * ledger.h
 *		Who has kept slots from others, for how long, by role, application and query.
 */
#ifndef GOVERNOR_LEDGER_H
#define GOVERNOR_LEDGER_H

#include "culprit.h"

extern void governor_ledger_add(const GovernorCulprit *culprit, const GovernorBlame *blame, uint64 word, int64 elapsed_us);
extern void governor_ledger_reset(void);

#endif							/* GOVERNOR_LEDGER_H */
