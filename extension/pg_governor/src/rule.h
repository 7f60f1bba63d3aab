/*
 * rule.h
 *		The rules by which a transaction gets another pool than its session's own.
 */
#ifndef GOVERNOR_RULE_H
#define GOVERNOR_RULE_H

#include "compat.h"

#include "comment.h"
#include "state.h"

/* What a condition is about. */
typedef enum GovernorConditionKind
{
	GOVERNOR_ON_ROLE,			/* the login role; NULL: every role */
	GOVERNOR_ON_DATABASE,
	/* what the client says of itself */
	GOVERNOR_ON_APPLICATION,
	GOVERNOR_ON_TAG,
	GOVERNOR_ON_QUERY_ID,
} GovernorConditionKind;

typedef struct GovernorCondition
{
	GovernorConditionKind kind;
	const char *key;			/* of a tag */
	const char *value;
	int64		query_id;
} GovernorCondition;

typedef struct GovernorRule
{
	char		pool[NAMEDATALEN];
	const char *text;			/* its conditions, as they were written */
	int			first;			/* of its conditions */
	int			count;
} GovernorRule;

/* A value of pg_governor.pool_rules; what its pointers point to lies behind it. */
typedef struct GovernorRuleList
{
	uint64		fingerprint;
	int			count;
	GovernorCondition *conditions;
	GovernorRule rules[FLEXIBLE_ARRAY_MEMBER];
} GovernorRuleList;

/* What is known of a transaction when its pool is chosen. */
typedef struct GovernorFacts
{
	const char *role;
	const char *database;
	const char *application;
	bool		is_superuser;
	int64		query_id;		/* 0 = none */
	const GovernorTag *tags;
	int			tag_count;
} GovernorFacts;

typedef enum GovernorRuleVerdict
{
	GOVERNOR_RULE_MISSES,
	GOVERNOR_RULE_DENIED,		/* the client asks for the pool, and its role may not have it */
	GOVERNOR_RULE_HOLDS,
} GovernorRuleVerdict;

/* NULL until the setting has been read. */
extern GovernorRuleList *governor_rules;

extern bool governor_rules_check(char **newval, void **extra, GucSource source);
extern void governor_rules_assign(const char *newval, void *extra);
extern GovernorRuleVerdict governor_rule_judge(const GovernorRule *rule, const GovernorFacts *facts);
extern bool governor_rule_waits_for(const GovernorRule *rule, const GovernorFacts *facts);
extern bool governor_rules_have(GovernorConditionKind kind);

#endif							/* GOVERNOR_RULE_H */
