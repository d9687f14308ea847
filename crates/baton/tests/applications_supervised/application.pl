#!/usr/bin/perl
# A FastCGI application that reports on its own process. The path selects its behaviour.
use strict;
use warnings;
use FCGI;

print STDERR "begins with @ARGV\n";
my %environment = %ENV;
my $self = $$;
my $keeper = fork;
if ($keeper == 0) { sleep 20 while getppid() == $self; exit }
for (@ARGV) { exit 3 if /^unless=(.*)/ && -e $1 }
$SIG{TERM} = 'IGNORE' if grep { $_ eq 'stubborn' } @ARGV;
my $request = FCGI::Request();
while ($request->Accept() >= 0) {
    my $path = $request->GetEnvironment()->{REQUEST_URI};
    kill KILL => $$ if $path =~ /die/;
    if ($path =~ /begin/) { print "Content-Type: text/plain\r\n\r\n"; print 'begun'; $request->Flush() }
    sleep 1000 if $path =~ /hang/;
    if ($path =~ /wait=(.*)/) { select undef, undef, undef, 0.01 until -e $1 }
    if ($path =~ /drip=(.*)/) {
        print "Content-Type: text/plain\r\n\r\n";
        until (-e $1) { print '.'; $request->Flush(); select undef, undef, undef, 0.01 }
        print "pid=$$\n";
        next;
    }
    my $text = "pid=$$ child=$keeper uid=$< args=@ARGV cwd=" . readlink('/proc/self/cwd') . "\n";
    my @sockets = grep { (readlink($_) // '') =~ /^socket/ } glob '/proc/self/fd/*';
    $text .= 'sockets=' . @sockets . "\n";
    $text = join '', map { "$_=$environment{$_}\n" } sort keys %environment if $path =~ /environment/;
    print "Content-Type: text/plain\r\n\r\n$text";
}
