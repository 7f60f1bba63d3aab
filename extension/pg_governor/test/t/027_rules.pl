# Which pool a transaction has, by role, database, application, tag and query identifier; who may not choose it; and what a
# pool that only observes, a reload and a pause do to those in it.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = governed_node('rules', <<'EOC');
pg_governor.transaction_limit = 4
pg_governor.query_limit = 4
pg_governor.autocommit_limit = 4
pg_governor.gate_autocommit = on
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.long_time = 0
pg_governor.queue_timeout = 0
compute_query_id = on
pg_governor.pools = 'reports(transaction=1), batch(), night(), web(), own(), marked()'
EOC
my $q = 'SELECT pool FROM pg_governor_sessions WHERE pid = pg_backend_pid()';
# Another statement to the server, with a query identifier of its own.
my $marked = "$q AND pid IS NOT NULL";
my $look = session($node);
$look->ask('SET pg_governor.gate_autocommit = off');
$look->ask("CREATE ROLE $_ LOGIN IN ROLE pg_monitor") for qw(app etl web other);
$look->ask('CREATE ROLE boss LOGIN SUPERUSER; CREATE ROLE free LOGIN IN ROLE pg_monitor');
$look->ask("ALTER ROLE other SET pg_governor.pool = 'own'");
$look->ask("CREATE FUNCTION inner_tag() RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN ($q /*job=''report''*/); END'");
my ($query_id) = $look->ask("EXPLAIN (VERBOSE) $marked") =~ /Query Identifier: (-?\d+)/ or die 'no query identifier';
my $rules = 'reports(role=app, tag.job=report, tag.job="a, ""b"" %"), batch(role=app, tag.job=batch, tag.kind=bulk), '
	. "web(role=web, database=postgres), web(role=web, database=nowhere, tag.job=report), night(role=ETL, application=\"Nightly Run\"), marked(role=public, query_id=$query_id)";
set_all($node, pool_rules => $rules, exempt_roles => 'free');

# role, what it says, the last line of the answer
my @cases = (
	[ 'app', $q, 'default' ],
	# one role, two tags
	[ 'app', "$q /*job='report'*/", 'reports' ],
	[ 'app', "$q /*action='x',job='batch',kind='bulk'*/", 'batch' ],
	[ 'app', "$q /*job='batch'*/", 'default' ],
	[ 'app', "/* kind = 'bulk', job = 'batch' */ $q", 'batch' ],
	[ 'app', "$q /*job='a%2C%20\"b\"%20%25'*/", 'reports' ],
	[ 'app', "SELECT 1 /*job='report'*/ \\; $q", 'reports' ],
	# malformed
	[ 'app', "$q /*job='report*/", 'default' ],
	[ 'app', "$q /*job='report%'*/", 'default' ],
	[ 'app', "$q /*job='report' now*/", 'default' ],
	[ 'app', "$q /* /*job='report'*/ */", 'default' ],
	[ 'app', "$q -- job='report'\n", 'default' ],
	# not granted: the session stays where its role has put it
	[ 'etl', "$q /*job='report'*/", 'default' ],
	[ 'other', $q, 'own' ],
	[ 'other', "$q /*job='report'*/", 'own' ],
	[ 'other', "SET application_name = 'Nightly Run';\n$q", 'own' ],
	[ 'app', "SET ROLE pg_monitor;\n$q /*job='report'*/", 'reports' ],
	# role, database and application
	[ 'web', $q, 'web' ],
	[ 'etl', "SET application_name = 'Nightly Run';\n$q", 'night' ],
	[ 'etl', "SET application_name = 'nightly run';\n$q", 'default' ],
	# query identifiers, constants aside
	[ 'other', $marked, 'marked' ],
	[ 'app', "$marked /*job='report'*/", 'reports' ],
	# whom no rule keeps out, and whom no pool has
	[ 'boss', "$q /*job='report'*/", 'reports' ],
	[ 'boss', $q, 'default' ],
	[ 'free', "$q /*job='report'*/", '' ],
	# a block: BEGIN, or the first statement of a block whose BEGIN has no tag
	[ 'app', "BEGIN /*job='report'*/;\n$q;\nCOMMIT", 'reports' ],
	[ 'app', "BEGIN /*job='report'*/;\n$q /*job='batch',kind='bulk'*/;\nCOMMIT", 'reports' ],
	[ 'app', "BEGIN;\n$q /*job='report'*/;\nCOMMIT", 'reports' ],
	[ 'app', "BEGIN;\nSET LOCAL work_mem = '1MB';\n$q /*job='report'*/;\nCOMMIT", 'reports' ],
	[ 'app', "BEGIN;\nSELECT 1;\n$q /*job='report'*/;\nCOMMIT", 'default' ],
	[ 'app', "BEGIN /*job='other'*/;\n$q /*job='report'*/;\nCOMMIT", 'default' ],
	[ 'app', "BEGIN /*job='report'*/;\nCOMMIT AND CHAIN;\n$q;\nCOMMIT", 'default' ],
	[ 'app', "BEGIN;\nCOMMIT AND CHAIN;\n$q /*job='report'*/;\nCOMMIT", 'reports' ],
	[ 'other', "BEGIN;\n$marked;\nCOMMIT", 'marked' ],
	# the outermost statement
	[ 'app', 'SELECT inner_tag()', 'default' ],
	[ 'app', "SELECT inner_tag() /*job='batch',kind='bulk'*/", 'batch' ],
	[ 'app', "COPY ($q) TO STDOUT /*job='report'*/", 'reports' ],
	[ 'app', "BEGIN;\nDECLARE c CURSOR FOR $q /*job='report'*/;\nFETCH c;\nCOMMIT", 'reports' ],
	# a plan that was made before
	[ 'app', "PREPARE p AS $q /*job='report'*/;\n$q;\nEXECUTE p", "default\nreports" ],
	[ 'app', "PREPARE p AS $q;\nEXECUTE p /*job='report'*/", 'reports' ],
	[ 'app', "PREPARE p AS $q /*job='report'*/;\nEXECUTE p /*job='batch',kind='bulk'*/", 'batch' ],
	[ 'other', "PREPARE p AS $marked;\nEXECUTE p", 'marked' ]);
for my $case (@cases)
{
	my ($role, $sql, $expected) = @$case;
	my $client = session($node, user => $role, quiet => 1);
	my $answer = $client->ask($sql);
	is($answer =~ s/^1\n//r, $expected, "$role: " . $sql =~ s/\Q$q\E/Q/gr =~ s/\n/ /gr);
	is($client->errors, '', 'without an error') if $expected ne '';
	$client->leave;
}

# by the extended protocol, prepared once and executed often
sub counts { return $look->ask("SELECT string_agg(concat_ws(' ', place, chosen, denied), ', ' ORDER BY place) FROM pg_governor_rules") }
my $script = $node->basedir . '/tagged.sql';
append_to_file($script, "SELECT 1 /*job='report'*/;\n");
$look->ask('SELECT pg_governor_reset()');
is(counts(), '1 0 0, 2 0 0, 3 0 0, 4 0 0, 5 0 0, 6 0 0', 'the counts begin at zero');
$node->command_ok([ 'pgbench', '-n', '-M', $_, '-t', 10, '-U', 'app', '-f', $script, $node->connstr('postgres') ], "pgbench -M $_")
	for qw(simple extended prepared);
is(counts(), '1 30 0, 2 0 0, 3 0 0, 4 0 0, 5 0 0, 6 0 0', 'each execution is counted');
$node->command_ok([ 'pgbench', '-n', '-M', 'prepared', '-t', 10, '-U', 'etl', '-f', $script, $node->connstr('postgres') ], 'of another role');
is(counts(), '1 30 10, 2 0 0, 3 0 0, 4 0 0, 5 0 0, 6 0 0', 'and so is each one that its role may not have');
is($look->ask("SELECT pool, conditions FROM pg_governor_rules WHERE place = 1"), 'reports|role=app, tag.job=report, tag.job="a, ""b"" %"',
	'a rule is shown as it was written');

# without query identifiers a rule by them chooses nothing, and it is said
$node->append_conf('postgresql.conf', 'compute_query_id = off');
reload_all($node);
my $client = session($node, user => 'other', quiet => 1);
is($client->ask($marked), 'own', 'no query identifier, no rule by it');
like($look->ask('SELECT array_to_string(problems, \';\') FROM pg_governor_health'), qr/by query_id choose nothing/, 'the health says so');
$client->leave;
$node->append_conf('postgresql.conf', 'compute_query_id = on');
set_all($node, pool_rules => 'gone(role=public, tag.job=x), reports(role=app, tag.job=report)');
is($look->ask('SELECT array_to_string(problems, \';\') FROM pg_governor_health'),
	'rule 1 of pg_governor.pool_rules chooses nothing, since pg_governor.pools does not list "gone"', 'a pool that is not listed');

# a full pool keeps out who asks for it, and nobody else of the same role
my $tagged = "BEGIN /*job='report'*/";
my $in = 'FROM pg_governor_pools WHERE class = \'transaction\' AND pool =';
my $holder = session($node, user => 'app');
$holder->ask($tagged);
my $waiter = session($node, user => 'app');
$waiter->tell($tagged);
wait_for_queue($node, 1);
is($look->ask("SELECT taken, queued $in 'reports'"), '1|1', 'one works in the pool of the tag, one queues');
my $beside = session($node, user => 'app');
is($beside->ask('BEGIN /*job=\'batch\'*/'), '', 'another tag of the same role does not');
$beside->ask('COMMIT');

# an administrator's move counts more than a rule
is($look->ask("SELECT pg_governor_move($waiter->{pid}, 'night')"), 't', 'moved out of the queue');
is($waiter->ask($q), 'night', 'and into the other pool');
$waiter->ask('COMMIT');
$look->ask("SELECT pg_governor_move($waiter->{pid})");
$waiter->tell($tagged);
wait_for_queue($node, 1);

# a superuser who asks for a full pool has the reserved slots
set_all($node, reserved_slots => 1);
my $boss = session($node, user => 'boss');
$boss->ask($tagged);
is($look->ask("SELECT reserved, taken, queued $in 'reports'"), '1|1|1', 'a superuser does not queue');
$boss->ask('COMMIT');
set_all($node, reserved_slots => 0);

# a wait at the first statement that fails leaves nothing that could run without a slot
my $block = session($node, user => 'app');
$block->ask("SET pg_governor.user_queue_timeout = '50ms';\nBEGIN;\nSAVEPOINT a");
is($block->errors, '', 'BEGIN does not wait where a tag may follow');
$block->ask("SELECT 1 /*job='report'*/");
like($block->errors, qr/queue timeout/, 'the first statement does');
$block->ask("ROLLBACK TO a");
like($block->errors, qr/queue timeout/, 'and the block has failed as a whole');
$block->ask("ROLLBACK");
is($block->ask('SELECT 2'), '2', 'the next statement is fine');
$block->ask("BEGIN;\nSAVEPOINT a;\nSELECT pg_reload_conf();\nROLLBACK TO a;\nSELECT 1 /*job='report'*/");
like($block->errors, qr/queue timeout/, 'a statement that never queues does not decide for its block');
$block->ask('ROLLBACK');
$block->leave;

# a reload that takes the pool away: who waits there gets a slot there, and what follows is where it was without
set_all($node, pool_rules => '', pools => 'batch()');
is($look->ask('SELECT count(*) FROM pg_governor_rules'), '0', 'the rules are gone');
$waiter->settle;
is($waiter->ask($q), 'reports', 'who waited in the pool that is gone has a slot there');
$_->ask('COMMIT') for ($waiter, $holder);
is($waiter->ask("$q /*job='report'*/"), 'default', 'its next transaction is in its own pool');
$node->poll_query_until('postgres', 'SELECT count(*) FROM pg_governor_pools WHERE pool = \'reports\'', '0') or die;
pass('the place of the pool is free');

# a list of roles would have every session look for its pool again
$look->ask('ALTER SYSTEM RESET pg_governor.exempt_roles');
# one that adds a pool and a rule, while somebody holds and waits in the pool that a rule takes from them
set_all($node, transaction_limit => 1);
$holder->ask('BEGIN');
$waiter->tell('BEGIN');
wait_for_queue($node, 1);
set_all($node, pools => 'batch(), extra(transaction=1)', pool_rules => 'extra(role=app, tag.job=report)');
is($beside->ask("$tagged;\n$q"), 'extra', 'who comes with the tag is in the new pool at once');
$holder->ask('COMMIT');
$waiter->settle;
is($waiter->ask($q), 'default', 'who waited in the old one is still there');
$_->ask('COMMIT') for ($waiter, $beside);
set_all($node, pool_rules => '');
is($beside->ask($q), 'default', 'who was in a pool by a rule that is gone is back in its own');

# a pool that observes holds nobody, and counts those that would wait or be refused; the others hold as ever
set_all($node, pools => 'watched(transaction=1, mode=observe), extra(transaction=1)', max_queue => 1,
	pool_rules => 'watched(role=app, tag.job=watch), extra(role=app, tag.job=report)');
$look->ask('SELECT pg_governor_reset()');
my @watched = map { session($node, user => 'app') } 1 .. 3;
$_->ask('BEGIN /*job=\'watch\'*/') for @watched;
is($look->ask("SELECT taken, queued, refused $in 'watched'"), '1|1|1', 'nobody waits in the pool that observes');
is($look->ask('SELECT bool_and(observed), count(*) FROM pg_governor_queue'), 't|1', 'the queue says who would');
is($look->ask("SELECT mode, enforced FROM pg_governor_status WHERE class = 'transaction' AND pool IN ('watched', 'extra') ORDER BY pool"),
	"enforce|limit\nobserve|observed", 'the status says which pool observes');
$holder->ask($tagged);
$waiter->tell($tagged);
$node->poll_query_until('postgres', 'SELECT count(*) FROM pg_governor_queue WHERE NOT observed', '1') or die;
pass('in another pool one waits');
$_->ask('COMMIT') for @watched;
is($look->ask("SELECT taken, queued, waits $in 'watched'"), '0|0|1', 'what would have been a wait is counted');

# from enforcing to observing: who waits is let in
set_all($node, pools => 'watched(transaction=1, mode=observe), extra(transaction=1, mode=observe)');
$waiter->settle;
pass('who waits in a pool that begins to observe is let in');
$_->ask('COMMIT') for ($waiter, $holder);

# a pause of the pool of a tag holds who asks for it, also over a reload
set_all($node, pools => 'extra(transaction=4)', max_queue => 0);
$look->ask("SELECT pg_governor_pause('extra')");
$waiter->tell($tagged);
$node->poll_query_until('postgres', "SELECT paused FROM pg_governor_sessions WHERE pid = $waiter->{pid}") or die;
$holder->ask("BEGIN;\nSELECT 1;\nCOMMIT");
pass('others of the role go on');
set_all($node, pools => 'extra(transaction=4), more()');
is($look->ask("SELECT paused FROM pg_governor_sessions WHERE pid = $waiter->{pid}"), 't', 'a reload does not end it');
is($look->ask("SELECT pg_governor_resume('extra')"), '1', 'it is resumed');
$waiter->settle;
is($waiter->ask($q), 'extra', 'and goes on in its pool');
$waiter->ask('COMMIT');

$ENV{PGOPTIONS} = $GovernorTest::LOOK;
nothing_left($node, 'rules');
$node->stop;
done_testing();
