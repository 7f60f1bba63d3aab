/*
 * comment.h
 *		Comments around a statement, and the tags in them.
 */
#ifndef GOVERNOR_COMMENT_H
#define GOVERNOR_COMMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Of what is in front of a statement, and of its end, so much is looked at. */
#define GOVERNOR_COMMENT_BYTES 4096
#define GOVERNOR_COMMENTS_MAX 32
#define GOVERNOR_TAGS_MAX 32

/* Bytes of a text, in it. */
typedef struct GovernorSpan
{
	const char *begin;
	const char *end;
} GovernorSpan;

/* A tag as it stands in a comment: both parts are encoded. */
typedef struct GovernorTag
{
	GovernorSpan key;
	GovernorSpan value;
} GovernorTag;

extern const char *governor_comments_begin(const char *text, const char *statement);
extern const char *governor_comment_skip(const char *at, const char *stop);
extern int	governor_comment_tags(const char *text, GovernorSpan statement, GovernorTag *tags, int room);
extern const GovernorTag *governor_tag_find(const GovernorTag *tags, int count, const char *key);
extern bool governor_tag_part_is(GovernorSpan part, const char *plain);

#endif							/* GOVERNOR_COMMENT_H */
