# Who keeps the slots of others is named, and cancelled where a cancel helps; innocents beside it never are.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

# Nothing but the end of the culprit ends this wait.
my $node = governed_node('culprits', <<'EOC');
pg_governor.transaction_limit = 4
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.long_time = 0
pg_governor.queue_timeout = 0
pg_governor.policy = fifo
pg_governor.cancel_culprit = observe
pg_governor.culprit_time = 500ms
compute_query_id = on
EOC
$node->safe_psql('postgres', <<'EOC');
CREATE ROLE app LOGIN;
CREATE TABLE hot AS SELECT 1 AS id, 0 AS v;
CREATE TABLE other AS SELECT 1 AS id;
GRANT ALL ON hot, other TO app;
EOC

my $update = 'UPDATE hot SET v = v + 1';
my $long = 'SELECT pg_sleep(1800)';
my $culprit = session($node, user => 'app');
my $admin = session($node);
my @blocked = map { session($node, user => 'app') } 1 .. 2;
my $worker = session($node, user => 'app');
my @queue = map { session($node, user => 'app') } 1 .. 2;
$culprit->ask("SET application_name = 'the culprit'");

# The root does what it is told; two wait for its row, one works, two queue.
sub standstill
{
	my ($root, @begin) = @_;
	$root->ask($_) for @begin;
	$worker->ask("BEGIN;\nSELECT count(*) FROM other");
	$worker->tell($long);
	$_->ask('BEGIN') for @blocked;
	$_->tell("$update;\nCOMMIT") for @blocked;
	$node->poll_query_until('postgres', "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'", '2') or die;
	$_->tell("BEGIN;\nSELECT id FROM other;\nCOMMIT") for @queue;
}

# The innocents end well, whatever has become of the root.
sub innocents_end
{
	my ($case) = @_;
	$_->settle for @blocked;
	$worker->cancel($node);
	is(join('', map { $_->settle } @queue), "1" x @queue, "$case: who queued got its turn");
	is(join('', map { $_->errors } @blocked, @queue), '', "$case: and nobody else an error");
}

sub verdict
{
	my ($where, $verdict) = @_;
	return $node->poll_query_until('postgres', "SELECT verdict FROM pg_governor_culprits WHERE $where", $verdict);
}

# only observed
standstill($culprit, 'BEGIN', $update);
$culprit->tell($long);
ok(verdict("application_name = 'the culprit' AND query_id IS NOT NULL AND role = 'app'", 'would be cancelled'), 'the culprit is named');
my $log = slurp_file($node->logfile);
my @named = $log =~ /(would cancel the transaction of process $culprit->{pid}, which has kept 3\.0 of 4 slots .* while 2 sessions queue)/g;
is(scalar @named, 1, 'once in the log');
usleep(700_000);
is($node->safe_psql('postgres', "SELECT named, cancelled, transactions, last_pid = $culprit->{pid}, last_slots, waiter_seconds > 0, slot_seconds >= 1.5
	FROM pg_governor_culprits WHERE application_name = 'the culprit' AND verdict <> 'watched'"), '1|0|1|t|3|t|t', 'with what it kept');
is($node->safe_psql('postgres', "SELECT sum(named), sum(cancelled) FROM pg_governor_culprits"), '1|0', 'and nobody else');
is($node->safe_psql('postgres', "SELECT slot_seconds > 0, verdict FROM pg_governor_culprits WHERE last_pid = $worker->{pid}"), 't|watched',
	'who only works keeps its own slot');
is($node->safe_psql('postgres', "SELECT state FROM pg_stat_activity WHERE pid = $culprit->{pid}"), 'active', 'it is left alone');

# cancelled
set_all($node, cancel_culprit => 'on');
ok($node->poll_query_until('postgres', "SELECT cancelled FROM pg_governor_culprits WHERE application_name = 'the culprit' AND named = 1", '1'), 'it is cancelled');
$culprit->settle;
like($culprit->errors, qr/canceling statement due to user request.*pg_governor cancelled it, since it kept 3 slots while 2 sessions queued or were let in/s,
	'its client is told why');
$culprit->ask('ROLLBACK');
innocents_end('cancelled');
is($culprit->ask('SELECT 7') . $culprit->errors, '7', 'its session goes on');
like(slurp_file($node->logfile), qr/pg_governor: cancelled the transaction of process $culprit->{pid}/, 'it is in the log');
nothing_left($node, 'cancelled');

# those whom it must not touch, or would not help
my %cases = (
	'a session that waits for its client' => [ $culprit, [ 'BEGIN', $update ], undef, 'waits for its client' ],
	'a superuser' => [ $admin, [ 'BEGIN', $update ], $long, 'privileged' ],
	'no gated transaction' =>
	  [ $culprit, [], "WITH u AS ($update RETURNING 1) SELECT pg_sleep(1800) FROM u", 'no gated transaction' ]);
for my $case (sort keys %cases)
{
	my ($root, $begin, $last, $verdict) = @{ $cases{$case} };
	$node->safe_psql('postgres', 'SELECT pg_governor_reset()');
	if (@$begin)
	{
		standstill($root, @$begin);
		$root->tell($last) if $last;
	}
	else
	{
		$root->tell($last);
		$node->poll_query_until('postgres', "SELECT wait_event FROM pg_stat_activity WHERE pid = $root->{pid}", 'PgSleep') or die;
		# there is one slot more without it
		my $filler = session($node, user => 'app');
		$filler->ask('BEGIN');
		standstill($root);
		$case .= ': filled';
		ok(verdict("last_pid = $root->{pid}", $verdict), "$case: named");
		usleep(1_000_000);
		$root->cancel($node);
		innocents_end($case);
		$filler->ask('COMMIT');
		$filler->leave;
		is($node->safe_psql('postgres', 'SELECT sum(cancelled) FROM pg_governor_culprits'), '0', "$case: not cancelled");
		next;
	}
	ok(verdict("last_pid = $root->{pid}", $verdict), "$case: named");
	usleep(1_000_000);
	is($node->safe_psql('postgres', 'SELECT sum(cancelled) FROM pg_governor_culprits'), '0', "$case: not cancelled");
	if ($last) { $root->cancel($node) } else { $root->ask('ROLLBACK') }
	is($root->errors, '', "$case: no error");
	innocents_end($case);
}

# those who wait for its lock are let in beyond the limit after a while, and nobody queues any more
set_all($node, discount_time => '50ms');
$node->safe_psql('postgres', 'SELECT pg_governor_reset()');
$culprit->ask("BEGIN;\n$update");
$_->tell("BEGIN;\n$update;\nCOMMIT") for @blocked, $worker, @queue;
# so many that nobody follows each of those in front of another one
my $script = $node->basedir . '/update.sql';
append_to_file($script, "BEGIN;\n$update;\nCOMMIT;\n");
my $load = IPC::Run::start([ 'pgbench', '-n', '-U', 'app', '-c', 22, '-T', 1800, '-f', $script, $node->connstr('postgres') ],
	'>', \my $out, '2>', \my $err);
$node->poll_query_until('postgres', "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'", '27') or die;
wait_for_queue($node, 0);
$culprit->tell($long);
$culprit->settle;
like($culprit->errors, qr/pg_governor cancelled it, since it kept \d+ slots while \d+ sessions queued or were let in/, 'a culprit behind which all were let in is cancelled');
$culprit->ask('ROLLBACK');
$_->settle for @blocked, $worker, @queue;
is(join('', map { $_->errors } @blocked, $worker, @queue), '', 'those who waited for it go on');
$load->kill_kill;
$node->poll_query_until('postgres', 'SELECT sum(taken) FROM pg_governor_pools', '0') or die;
set_all($node, discount_time => 0);

# transactions that end at about the time at which they would be cancelled: what their sessions do next never is
set_all($node, culprit_time => '100ms');
$node->safe_psql('postgres', 'SELECT pg_governor_reset()');
my ($cancelled, $hit) = (0, 0);
for my $run (1 .. $ENV{RUNS} // 12)
{
	$culprit->ask("BEGIN;\n$update");
	$worker->ask('BEGIN');
	$_->ask('BEGIN') for @blocked;
	$_->tell("$update;\nCOMMIT;\nSELECT 'innocent'") for @blocked;
	$_->tell("BEGIN;\nCOMMIT;\nSELECT 'innocent'") for @queue;
	$culprit->tell(sprintf("SELECT pg_sleep(%.4f);\nCOMMIT;\nSELECT 'innocent', pg_sleep(0.02)", 0.1 + rand(0.25)));
	$hit++ unless $culprit->settle =~ /innocent/;
	$worker->ask('COMMIT');
	$hit += grep { $_->settle !~ /innocent/ } @blocked, @queue;
	$cancelled++ if $culprit->errors =~ /pg_governor cancelled it/;
	is(join('', map { $_->errors } @blocked, @queue, $worker), '', "run $run: no error of an innocent");
}
is($hit, 0, "no innocent is hit, while $cancelled of the others are cancelled");
is($node->safe_psql('postgres', "SELECT sum(cancelled) >= $cancelled FROM pg_governor_culprits WHERE application_name = 'the culprit'"), 't',
	'each is counted');
nothing_left($node, 'at the end');
$node->stop;
done_testing();
