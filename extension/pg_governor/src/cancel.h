/*
 * cancel.h
 *		Cancels one transaction of another process, and no other one.
 */
#ifndef GOVERNOR_CANCEL_H
#define GOVERNOR_CANCEL_H

#include "state.h"

extern bool governor_cancel_is_asked(const GovernorSession *session);
extern bool governor_cancel_send(int session, uint64 seen, uint32 slots, uint32 waiters);
extern void governor_cancel_settle(void);
extern void governor_cancel_explain(ErrorData *error);

#endif							/* GOVERNOR_CANCEL_H */
