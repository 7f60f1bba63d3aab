/*
 * hint.c
 *		Hint comments in front of a statement.  Like gate.c, it needs no server.
 *
 * A hint is a word in a comment that begins with a plus sign.  There may be several
 * comments, with and without hints, of this and of other extensions.
 */
#include "hint.h"

#include "comment.h"

static bool has_word(const char *from, const char *to, const char *word);
static bool is_part_of_word(char c);

/* Until 17 a statement's location is where the one before it ends, from 18 on that of its first word. */
bool
governor_hint_is_there(const char *text, int location, const char *hint)
{
	const char *statement = text + location;
	const char *at = governor_comments_begin(location > GOVERNOR_COMMENT_BYTES ?
											 statement - GOVERNOR_COMMENT_BYTES : text, statement);
	const char *stop = at + strnlen(at, statement - at + GOVERNOR_COMMENT_BYTES);

	for (;;)
	{
		const char *comment;

		at += strspn(at, " \t\r\n\f\v;");
		comment = at;
		if (at >= stop)
			return false;
		at = governor_comment_skip(at, stop);
		if (at == comment)
			return false;
		if (strncmp(comment, "/*+", 3) == 0 && has_word(comment + 3, at, hint))
			return true;
	}
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
