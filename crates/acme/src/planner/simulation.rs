//! Years of certificates in milliseconds: an authority that fails, refuses, limits and moves its windows, and a clock
//! that is set wrong. Each seed is another history.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{FailureScope, Planner, PlannerAction, Validity, Window};
use crate::time::UnixTime;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
/// Histories begin here, in true time.
const START: u64 = 1_800_000_000;

/// An authority, its servers' error, and a server with some certificates.
struct World {
    /// True time, which the authority knows.
    now: u64,
    /// How far the server's clock is ahead.
    clock_error: i64,
    planner: Planner,
    random: fastrand::Rng,
    life: u64,
    has_renewal_info: bool,
    /// Until when the authority does not answer.
    out_until: u64,
    /// Until when it refuses each order.
    refuses_until: u64,
    held: BTreeMap<String, Validity>,
    windows: BTreeMap<String, Window>,
    orders: Vec<u64>,
    issued: u64,
    attempts_in_vain: Vec<u64>,
    questions: u64,
}

impl World {
    fn new(seed: u64, life: u64, names: &[&str]) -> Self {
        let mut planner = Planner::new(seed);
        planner.configure(names.iter().map(|name| ((*name).to_owned(), None)));
        Self {
            now: START,
            clock_error: 0,
            planner,
            random: fastrand::Rng::with_seed(!seed),
            life,
            has_renewal_info: true,
            out_until: 0,
            refuses_until: 0,
            held: BTreeMap::new(),
            windows: BTreeMap::new(),
            orders: Vec::new(),
            issued: 0,
            attempts_in_vain: Vec::new(),
            questions: 0,
        }
    }

    fn clock(&self) -> UnixTime {
        UnixTime(self.now.saturating_add_signed(self.clock_error))
    }

    fn run_until(&mut self, end: u64) {
        while self.now < end {
            match self.planner.next(self.clock()) {
                PlannerAction::Order { name, .. } => self.order(&name),
                PlannerAction::AskRenewalInfo { name } => self.answer_question(&name),
                PlannerAction::Wait { until } => {
                    let wait = until.since(self.clock()).as_secs();
                    assert!(wait > 0, "waits until {until:?}, which has passed");
                    self.now = (self.now + wait).min(end);
                }
            }
        }
    }

    fn order(&mut self, name: &str) {
        self.now += self.random.u64(1..20);
        if self.now < self.out_until {
            self.attempts_in_vain.push(self.now);
            return self.planner.handle_failure(name, FailureScope::Authority, Duration::ZERO, self.clock());
        }
        self.orders.push(self.now);
        if self.now < self.refuses_until {
            let scope = FailureScope::Certificate;
            return self.planner.handle_failure(name, scope, Duration::ZERO, self.clock());
        }
        self.issued += 1;
        // Let's Encrypt dates certificates back by an hour.
        let not_before = self.now - HOUR;
        let not_after = not_before + self.life;
        let validity = Validity { not_before: UnixTime(not_before), not_after: UnixTime(not_after) };
        let start = not_before + self.life * 3 / 5;
        let window = Window { start: UnixTime(start), end: UnixTime(start + self.life / 45) };
        self.held.insert(name.to_owned(), validity);
        self.windows.insert(name.to_owned(), window);
        self.planner.handle_issued(name, validity, self.clock());
    }

    fn answer_question(&mut self, name: &str) {
        self.now += 1;
        self.questions += 1;
        if self.now < self.out_until {
            self.attempts_in_vain.push(self.now);
            self.planner.handle_failure(name, FailureScope::Authority, Duration::ZERO, self.clock());
        } else if self.has_renewal_info {
            let ask_after = Duration::from_secs(6 * HOUR);
            self.planner.handle_renewal_info(name, self.windows[name], ask_after, self.clock());
        } else {
            self.planner.handle_no_renewal_info(name, self.clock());
        }
    }

    fn assert_all_valid(&self, names: &[&str]) {
        for name in names {
            let validity = self.held.get(*name).unwrap_or_else(|| panic!("no certificate for {name}"));
            assert!(self.now < validity.not_after.0, "{name} expired at {}", self.now);
        }
    }
}

/// The lives of certificates that Let's Encrypt issues, or has announced.
const LIVES: [u64; 4] = [90 * DAY, 64 * DAY, 45 * DAY, 6 * DAY];

/// Goal: with outages of up to a day every other week, with and without ARI, no certificate expires in two years, and
/// no more are ordered than that needs.
#[test]
fn certificates_outlive_outages() {
    const NAMES: [&str; 5] = ["a.example", "b.example", "c.example", "d.example", "e.example"];
    for (seed, life) in (0..12).zip(LIVES.into_iter().cycle()) {
        let mut world = World::new(seed, life, &NAMES);
        world.has_renewal_info = seed % 3 != 0;
        let years = START + 730 * DAY;
        world.run_until(START + DAY);
        while world.now < years {
            world.assert_all_valid(&NAMES);
            world.out_until = world.now + world.random.u64(0..DAY);
            for _ in 0..28 {
                world.run_until(world.now + DAY / 2);
                world.assert_all_valid(&NAMES);
            }
        }
        let needed = 730 * DAY / (life * 57 / 100) + 1;
        let names = NAMES.len() as u64;
        assert!(world.issued <= needed * names, "{} of {needed} each", world.issued);
        assert!(world.questions <= 730 * 5 * names, "{} questions", world.questions);
    }
}

/// Goal: an authority that is away is asked about once an hour however many certificates wait for it, and soon after it
/// comes back.
#[test]
fn an_authority_that_is_away_is_left_alone() {
    let names: Vec<String> = (0..200).map(|number| format!("{number}.example")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = World::new(7, 90 * DAY, &names);
    world.out_until = START + 3 * DAY;
    world.run_until(START + 3 * DAY);
    assert!(world.attempts_in_vain.len() < 90, "{} attempts", world.attempts_in_vain.len());
    world.run_until(START + 3 * DAY + 2 * HOUR);
    world.assert_all_valid(&names);
}

/// Goal: a name that never validates keeps below five failures an hour, and slows down to one a day; the others do not
/// wait for it.
#[test]
fn a_refused_certificate_waits_longer_and_longer() {
    let mut world = World::new(3, 90 * DAY, &["bad.example"]);
    world.refuses_until = u64::MAX;
    world.run_until(START + 30 * DAY);
    for (index, order) in world.orders.iter().enumerate() {
        let in_an_hour = world.orders[index..].iter().take_while(|later| **later < order + HOUR).count();
        assert!(in_an_hour < 5, "{in_an_hour} within an hour");
    }
    let late = world.orders.iter().filter(|order| **order > START + 10 * DAY).count();
    assert!((18..=24).contains(&late), "{late} in the last twenty days");
}

/// Goal: when the authority moves the window to now, because it must revoke, the certificate is renewed within the
/// interval of its questions, once.
#[test]
fn a_window_that_moves_is_followed() {
    for life in LIVES {
        let mut world = World::new(life, life, &["a.example"]);
        world.run_until(START + 2 * DAY);
        assert_eq!(world.issued, 1);
        let now = world.now;
        world.windows.insert("a.example".into(), Window { start: UnixTime(now - DAY), end: UnixTime(now) });
        world.run_until(now + 7 * HOUR);
        assert_eq!(world.issued, 2, "with a life of {} days", life / DAY);
    }
}

/// Goal: an authority whose windows always lie in the past gets an order a day at most.
#[test]
fn windows_in_the_past_do_not_make_a_loop() {
    let mut world = World::new(5, 90 * DAY, &["a.example"]);
    for _ in 0..400 {
        let past = Window { start: UnixTime(START - DAY), end: UnixTime(START) };
        world.windows.insert("a.example".into(), past);
        world.run_until(world.now + HOUR / 2);
    }
    assert!((5..=9).contains(&world.issued), "{} certificates in 8 days", world.issued);
}

/// Goal: a clock that is years ahead, or behind, for some hours costs few orders, and leaves valid certificates and no
/// endless wait behind.
#[test]
fn clocks_that_jump_are_survived() {
    const YEAR: i64 = 365 * 86_400;
    for (seed, jump) in (0_u64..).zip([10 * YEAR, -10 * YEAR, 80 * 86_400, -80 * 86_400, 3600, -3600]) {
        for life in LIVES {
            let mut world = World::new(seed, life, &["a.example", "b.example"]);
            world.run_until(START + life / 4);
            let issued = world.issued;
            world.clock_error = jump;
            world.run_until(world.now + 12 * HOUR);
            assert!(world.issued <= issued + 2, "{} orders while the clock was wrong", world.issued - issued);
            world.clock_error = 0;
            for _ in 0..400 {
                world.run_until(world.now + DAY / 2);
                world.assert_all_valid(&["a.example", "b.example"]);
            }
        }
    }
}

/// Goal: `Retry-After` of a rate limit is respected by that certificate alone, and not beyond a week.
#[test]
fn rate_limits_are_respected() {
    let now = UnixTime(START);
    let mut planner = Planner::new(1);
    planner.configure([("a.example".to_owned(), None), ("b.example".to_owned(), None)]);
    let hours = Duration::from_secs(36 * HOUR);
    planner.handle_failure("a.example", FailureScope::RateLimit, hours, now);
    assert!(matches!(planner.next(now), PlannerAction::Wait { .. }), "others may have reached theirs, too");
    let later = now.plus(Duration::from_secs(120));
    assert_eq!(planner.next(later), PlannerAction::Order { name: "b.example".into(), failures: 0 });
    assert_eq!(planner.status("a.example").unwrap().order_at, now.plus(hours));

    planner.handle_failure("a.example", FailureScope::RateLimit, Duration::from_secs(900 * DAY), now);
    assert_eq!(planner.status("a.example").unwrap().order_at, now.plus(Duration::from_secs(7 * DAY)));
}

/// Goal: a changed configuration orders what is new, keeps what is known, and does not shorten waits.
#[test]
fn a_new_configuration_keeps_what_it_can() {
    let now = UnixTime(START);
    let day = Duration::from_secs(DAY);
    let validity = Validity { not_before: now, not_after: now.plus(90 * day) };
    let mut planner = Planner::new(1);
    planner.configure([("a.example".to_owned(), Some(validity)), ("bad.example".to_owned(), None)]);
    planner.handle_failure("bad.example", FailureScope::Certificate, day, now);
    let window = Window { start: now.plus(9 * day), end: now.plus(10 * day) };
    planner.handle_renewal_info("a.example", window, day, now);
    let at = planner.status("a.example").unwrap().order_at;

    planner.configure([
        ("a.example".to_owned(), Some(validity)),
        ("bad.example".to_owned(), None),
        ("new.example".to_owned(), None),
    ]);
    assert_eq!(planner.status("a.example").unwrap().order_at, at);
    assert_eq!(planner.status("bad.example").unwrap().order_at, now.plus(day));
    assert_eq!(planner.next(now), PlannerAction::Order { name: "new.example".into(), failures: 0 });

    planner.configure([("a.example".to_owned(), None)]);
    assert_eq!(planner.status("bad.example"), None);
    assert_eq!(
        planner.next(now),
        PlannerAction::Order { name: "a.example".into(), failures: 0 },
        "names were added"
    );
}
