/*
 * hint.c
 *		Hint comments in front of a statement.  Like gate.c, it needs no server.
 *
 * A hint is a word in a comment that begins with a plus sign.  There may be several
 * comments, with and without hints, of this and of other extensions.  Everybody can send
 * comments of any length, and no interrupt is served here: so only the last ones are looked at,
 * and only so far back.
 */
#include "hint.h"

/* Of what is in front of a statement so much is looked at. */
#define BYTES_MAX 4096
#define COMMENTS_MAX 32

static const char *comments_begin(const char *text, const char *statement);
static const char *begin_of_block(const char *text, const char *end);
static const char *skip_comment(const char *at, const char *stop);
static bool has_word(const char *from, const char *to, const char *word);
static bool is_part_of_word(char c);

/* Until 17 a statement's location is where the one before it ends, from 18 on that of its first word. */
bool
governor_hint_is_there(const char *text, int location, const char *hint)
{
	const char *statement = text + location;
	const char *at = comments_begin(location > BYTES_MAX ? statement - BYTES_MAX : text, statement);
	const char *stop = at + strnlen(at, statement - at + BYTES_MAX);

	for (;;)
	{
		const char *comment;

		at += strspn(at, " \t\r\n\f\v;");
		comment = at;
		if (at >= stop)
			return false;
		at = skip_comment(at, stop);
		if (at == comment)
			return false;
		if (strncmp(comment, "/*+", 3) == 0 && has_word(comment + 3, at, hint))
			return true;
	}
}

/* The first of the comments that end where the statement begins. */
static const char *
comments_begin(const char *text, const char *statement)
{
	const char *begin = statement;

	for (int comments = 0; comments < COMMENTS_MAX; comments++)
	{
		const char *end = begin;
		const char *line;
		const char *dashes;

		while (end > text && strchr(" \t\r\n\f\v", end[-1]) != NULL)
			end--;
		for (line = end; line > text && line[-1] != '\n'; line--)
			;
		for (dashes = line; dashes < end && strncmp(dashes, "--", 2) != 0; )
			dashes = strncmp(dashes, "/*", 2) == 0 ? skip_comment(dashes, end) : dashes + 1;
		if (dashes < end && memchr(end, '\n', begin - end) != NULL)
			begin = dashes;
		else if (end - text >= 4 && strncmp(end - 2, "*/", 2) == 0)
			begin = begin_of_block(text, end);
		else
			return begin;
	}
	return begin;
}

static const char *
begin_of_block(const char *text, const char *end)
{
	const char *at = end - 2;

	for (int depth = 1; depth > 0 && at > text; )
	{
		at--;
		if (strncmp(at, "/*", 2) == 0)
			depth--;
		else if (at > text && strncmp(at - 1, "*/", 2) == 0)
		{
			depth++;
			at--;
		}
	}
	return at;
}

/* Comments between a slash and a star nest; returns the argument if there is none. */
static const char *
skip_comment(const char *at, const char *stop)
{
	int			depth = 0;

	if (strncmp(at, "--", 2) == 0)
	{
		while (at < stop && *at != '\r' && *at != '\n')
			at++;
		return at;
	}
	while (at < stop)
	{
		if (strncmp(at, "/*", 2) == 0)
		{
			depth++;
			at += 2;
		}
		else if (depth == 0)
			break;
		else if (strncmp(at, "*/", 2) == 0)
		{
			at += 2;
			if (--depth == 0)
				break;
		}
		else
			at++;
	}
	return at;
}

static bool
has_word(const char *from, const char *to, const char *word)
{
	Size		length = strlen(word);

	for (const char *at = from; at + length <= to; at++)
		if (strncmp(at, word, length) == 0 && (at == from || !is_part_of_word(at[-1])) &&
			!is_part_of_word(at[length]))
			return true;
	return false;
}

static bool
is_part_of_word(char c)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
