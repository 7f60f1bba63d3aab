/*
 * compat.h
 *		What differs between PostgreSQL 14 and 19, so that no other file asks
 *		for the version.
 */
#ifndef GOVERNOR_COMPAT_H
#define GOVERNOR_COMPAT_H

#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "lib/ilist.h"
#include "libpq/libpq.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM < 140000
#error "pg_governor needs PostgreSQL 14 or later"
#endif

/* The index of this process among ProcGlobal->allProcs. */
#if PG_VERSION_NUM >= 170000
#define governor_my_proc_number() ((int) MyProcNumber)
#else
#define governor_my_proc_number() ((int) MyProc->pgprocno)
#endif

/* The number of this transaction among those of this process. */
#if PG_VERSION_NUM >= 170000
#define governor_my_lxid() (MyProc->vxid.lxid)
#else
#define governor_my_lxid() (MyProc->lxid)
#endif

/* Whether a process is in a transaction; it may be another one's. */
#if PG_VERSION_NUM >= 170000
#define governor_proc_in_transaction(proc) ((proc)->vxid.lxid != InvalidLocalTransactionId)
#else
#define governor_proc_in_transaction(proc) ((proc)->lxid != InvalidLocalTransactionId)
#endif

/* 14 has to size shared memory before MaxBackends is known. */
#if PG_VERSION_NUM >= 150000
#define governor_max_backends() (MaxBackends)
#else
#include "postmaster/autovacuum.h"
#include "postmaster/bgworker.h"
#include "replication/walsender.h"
#define governor_max_backends() \
	(MaxConnections + autovacuum_max_workers + 1 + max_worker_processes + \
	 max_wal_senders)
#endif

#if PG_VERSION_NUM >= 150000
#define governor_reserve_setting_prefix(prefix) MarkGUCPrefixReserved(prefix)
#else
#define governor_reserve_setting_prefix(prefix) EmitWarningsOnPlaceholders(prefix)
#endif

/* The "extra" of a setting belongs to guc.c, which frees it in its own way. */
#if PG_VERSION_NUM >= 160000
#define governor_setting_alloc(size) guc_malloc(LOG, size)
#define governor_setting_free(pointer) guc_free(pointer)
#else
#define governor_setting_alloc(size) malloc(size)
#define governor_setting_free(pointer) free(pointer)
#endif

/*
 * Only 17 and later let an extension name what a session waits for.  Before, the name of
 * a lock's tranche is shown: a lock that nobody takes has it.
 */
#define GOVERNOR_QUEUE_EVENT "GovernorQueue"
#define GOVERNOR_PAUSE_EVENT "GovernorPause"
#if PG_VERSION_NUM >= 170000
#define governor_wait_event_new(name) WaitEventExtensionNew(name)
#else
#define governor_wait_event_new(name) \
	(PG_WAIT_LWLOCK | GetNamedLWLockTranche(name)->lock.tranche)
#endif

/* From 17 on a timeout ends transactions; not those that have not begun. */
#if PG_VERSION_NUM >= 170000
#include "utils/timeout.h"
#define governor_transaction_timeout_hold() disable_timeout(TRANSACTION_TIMEOUT, false)
#define governor_transaction_timeout_resume() \
	do { \
		if (TransactionTimeout > 0) \
			enable_timeout_after(TRANSACTION_TIMEOUT, TransactionTimeout); \
	} while (0)
#define governor_transaction_timeout_runs() get_timeout_active(TRANSACTION_TIMEOUT)
#define governor_transaction_timeout_left_ms() \
	((get_timeout_finish_time(TRANSACTION_TIMEOUT) - GetCurrentTimestamp()) / 1000)
#else
#define governor_transaction_timeout_runs() false
#define governor_transaction_timeout_left_ms() INT64CONST(0)
#define governor_transaction_timeout_hold() ((void) 0)
#define governor_transaction_timeout_resume() ((void) 0)
#endif

/* A closed socket wakes a waiter from 15 on; before, it has to look. */
#if PG_VERSION_NUM >= 150000
#define GOVERNOR_WL_SOCKET_CLOSED WL_SOCKET_CLOSED
#define governor_socket_close_wakes() WaitEventSetCanReportClosed()
#else
#define GOVERNOR_WL_SOCKET_CLOSED 0
#define governor_socket_close_wakes() false
#endif

/* A walk over the entries of the main lock table that a process owns. */
#if PG_VERSION_NUM >= 160000
#define governor_proc_locks_empty(proc, partition) \
	dlist_is_empty(&(proc)->myProcLocks[partition])
#define governor_foreach_proc_lock(proc, partition, entry) \
	for (dlist_node *node_ = (proc)->myProcLocks[partition].head.next; \
		 node_ != NULL && node_ != &(proc)->myProcLocks[partition].head && \
		 ((entry) = dlist_container(PROCLOCK, procLink, node_), true); \
		 node_ = node_->next)
#else
#define governor_proc_locks_empty(proc, partition) \
	SHMQueueEmpty(&(proc)->myProcLocks[partition])
#define governor_foreach_proc_lock(proc, partition, entry) \
	for ((entry) = (PROCLOCK *) SHMQueueNext(&(proc)->myProcLocks[partition], \
											 &(proc)->myProcLocks[partition], \
											 offsetof(PROCLOCK, procLink)); \
		 (entry) != NULL; \
		 (entry) = (PROCLOCK *) SHMQueueNext(&(proc)->myProcLocks[partition], \
											 &(entry)->procLink, \
											 offsetof(PROCLOCK, procLink)))
#endif

/* The words that say which locks of relations this process has by the fast path. */
#if PG_VERSION_NUM >= 180000
#define governor_fast_path_words() (FastPathLockGroupsPerBackend)
#define governor_fast_path_word(i) (MyProc->fpLockBits[i])
#else
#define governor_fast_path_words() (1)
#define governor_fast_path_word(i) (MyProc->fpLockBits)
#endif

/* Before a declaration; 18 has another name for it. */
#if PG_VERSION_NUM >= 180000
#define governor_noreturn pg_noreturn
#else
#define governor_noreturn pg_attribute_noreturn()
#endif

/* 19 passes EXPLAIN's state on to the planner. */
#if PG_VERSION_NUM >= 190000
#define GOVERNOR_PLANNER_PARAMS \
	Query *query, const char *text, int cursor_options, ParamListInfo params, ExplainState *explain
#define GOVERNOR_PLANNER_ARGS query, text, cursor_options, params, explain
#else
#define GOVERNOR_PLANNER_PARAMS \
	Query *query, const char *text, int cursor_options, ParamListInfo params
#define GOVERNOR_PLANNER_ARGS query, text, cursor_options, params
#endif

/* Whether somebody computes query identifiers. */
#if PG_VERSION_NUM >= 160000
#include "nodes/queryjumble.h"
#else
#include "utils/queryjumble.h"
#endif
#define governor_query_ids_are_computed() IsQueryIdEnabled()

/* The postmaster's list of background workers. */
#if PG_VERSION_NUM >= 180000
#define governor_foreach_worker(iter) dlist_foreach(iter, &BackgroundWorkerList)
#define governor_worker_of(iter) dlist_container(RegisteredBgWorker, rw_lnode, (iter).cur)
typedef dlist_iter governor_worker_iter;
#else
#define governor_foreach_worker(iter) slist_foreach(iter, &BackgroundWorkerList)
#define governor_worker_of(iter) slist_container(RegisteredBgWorker, rw_lnode, (iter).cur)
typedef slist_iter governor_worker_iter;
#endif

/* 18 lets pg_get_loaded_modules() show which build is running. */
#if PG_VERSION_NUM >= 180000
#define GOVERNOR_MODULE_MAGIC \
	PG_MODULE_MAGIC_EXT(.name = "pg_governor", .version = PG_GOVERNOR_VERSION)
#else
#define GOVERNOR_MODULE_MAGIC PG_MODULE_MAGIC
#endif

/* InitMaterializedSRF came with 15. */
#if PG_VERSION_NUM >= 150000
#define governor_materialize(fcinfo) InitMaterializedSRF(fcinfo, 0)
#else
static inline void
governor_materialize(FunctionCallInfo fcinfo)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext old_context;
	TupleDesc	desc;

	if (rsinfo == NULL || !IsA(rsinfo, ReturnSetInfo) ||
		!(rsinfo->allowedModes & SFRM_Materialize))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("set-valued function called in context that cannot accept a set")));
	old_context = MemoryContextSwitchTo(rsinfo->econtext->ecxt_per_query_memory);
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	rsinfo->returnMode = SFRM_Materialize;
	rsinfo->setDesc = desc;
	rsinfo->setResult = tuplestore_begin_heap(true, false, work_mem);
	MemoryContextSwitchTo(old_context);
}
#endif

#endif							/* GOVERNOR_COMPAT_H */
