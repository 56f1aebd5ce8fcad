//! Dates that a text names, such as `yesterday`, `5 March` or `2026-03-05`, resolved against the day on which it was
//! written.

use jiff::ToSpan as _;
use jiff::civil::{Date, Weekday};
use longhaul_protocol::At;

/// Days since 1970.
pub(crate) type Day = i32;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
const EPOCH: Date = jiff::civil::date(1970, 1, 1);
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];
const NUMBERS: [&str; 12] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
/// Words that name a time without naming a date.
const TIME_WORDS: [&str; 22] = [
    "ago",
    "tonight",
    "tomorrow",
    "morgen",
    "morning",
    "afternoon",
    "evening",
    "noon",
    "midnight",
    "weekend",
    "spring",
    "summer",
    "autumn",
    "winter",
    "heute",
    "gestern",
    "vorgestern",
    "montag",
    "freitag",
    "mardi",
    "lundi",
    "ayer",
];

/// The day of a moment, in UTC.
pub(crate) fn day_of(at: At) -> Day {
    Day::try_from(at.0.div_euclid(DAY_MS)).unwrap_or(0)
}

/// A day, several days or a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DateSpan {
    pub(crate) from: Day,
    /// The last day.
    pub(crate) to: Day,
    pub(crate) unit: DateUnit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DateUnit {
    Day,
    Month {
        /// The first day of the month before.
        since: Day,
        /// The last day of the month after.
        until: Day,
    },
}

impl DateSpan {
    fn days(from: Date, to: Date) -> Self {
        Self { from: number(from), to: number(to), unit: DateUnit::Day }
    }

    fn month(first: Date) -> Self {
        let (from, to) = (number(first), number(first.last_of_month()));
        // At an end of the calendar, the month has one neighbour.
        let since = first.checked_sub(1.months()).map_or(from, number);
        let until = first.checked_add(1.months()).map_or(to, |next| number(next.last_of_month()));
        Self { from, to, unit: DateUnit::Month { since, until } }
    }

    /// How near a day is to the named time: 1 within it, 0 far from it. People tell of a day on the days that follow.
    pub(crate) fn nearness(&self, day: Day) -> f32 {
        let (before, after) = (self.from - day, day - self.to);
        if before <= 0 && after <= 0 {
            return 1.0;
        }
        match self.unit {
            DateUnit::Month { since, until } if (since..=until).contains(&day) => 0.3,
            DateUnit::Month { .. } => 0.0,
            DateUnit::Day if (1..=10).contains(&after) => 0.6,
            DateUnit::Day if (11..=31).contains(&after) || (1..=3).contains(&before) => 0.3,
            DateUnit::Day => 0.0,
        }
    }

    pub(crate) fn overlaps(&self, from: Day, to: Day) -> bool {
        self.from <= to && from <= self.to
    }
}

/// Which year is meant where none is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tense {
    /// The last one: a question asks about the past.
    Past,
    /// The nearest one: a record may tell of plans.
    Nearest,
}

/// What a text says about time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TimeMention {
    /// The first date that it names.
    pub(crate) date: Option<DateSpan>,
    /// Whether it has a word for a time, with or without a date.
    pub(crate) names_time: bool,
}

impl TimeMention {
    pub(crate) fn find(text: &str, written: Day, tense: Tense) -> Self {
        let span = jiff::Span::new().try_days(i64::from(written));
        let Some(today) = span.ok().and_then(|span| EPOCH.checked_add(span).ok()) else {
            return Self::default();
        };
        let tokens = tokens(text);
        let mention = |index: usize| Mention { tokens: &tokens, index, today, tense };
        let date = (0..tokens.len()).find_map(|index| mention(index).date());
        let names_time = date.is_some() || (0..tokens.len()).any(|index| mention(index).is_time_word());
        Self { date, names_time }
    }
}

struct Token<'a> {
    text: &'a str,
    lower: String,
    /// The character after the token.
    then: Option<char>,
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    /// The most tokens to look at.
    const MAX_TOKENS: usize = 2_000;
    let mut tokens = Vec::new();
    let mut rest = text;
    while tokens.len() < MAX_TOKENS {
        rest = rest.trim_start_matches(|letter: char| !letter.is_alphanumeric());
        if rest.is_empty() {
            break;
        }
        let end = rest.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(rest.len());
        let (text, after) = rest.split_at(end);
        tokens.push(Token { text, lower: text.to_lowercase(), then: after.chars().next() });
        rest = after;
    }
    tokens
}

/// One place in a text that may name a time.
struct Mention<'a> {
    tokens: &'a [Token<'a>],
    index: usize,
    today: Date,
    tense: Tense,
}

impl Mention<'_> {
    /// The token this many places further on.
    fn token(&self, offset: isize) -> &str {
        let index = self.index.checked_add_signed(offset);
        index.and_then(|index| self.tokens.get(index)).map_or("", |token| token.lower.as_str())
    }

    fn date(&self) -> Option<DateSpan> {
        self.iso_date()
            .or_else(|| self.relative_day())
            .or_else(|| self.days_ago())
            .or_else(|| self.relative_span())
            .or_else(|| self.weekday())
            .or_else(|| self.month())
    }

    fn is_time_word(&self) -> bool {
        let token = self.token(0);
        let is_clock = || {
            self.tokens[self.index].then == Some(':')
                && token.len() <= 2
                && is_digits(token)
                && self.token(1).len() == 2
                && is_digits(self.token(1))
        };
        TIME_WORDS.contains(&token)
            || WEEKDAYS.iter().any(|(name, _)| token.strip_suffix('s').unwrap_or(token) == *name)
            || year(token).is_some()
            || is_clock()
            || matches!(self.token(1), "am" | "pm" | "o") && is_digits(token)
    }

    fn iso_date(&self) -> Option<DateSpan> {
        let dash = |offset: usize| self.tokens.get(self.index + offset)?.then.filter(|then| *then == '-');
        let year = year(self.token(0))?;
        dash(0)?;
        dash(1)?;
        let date = Date::new(year, self.token(1).parse().ok()?, self.token(2).parse().ok()?).ok()?;
        Some(DateSpan::days(date, date))
    }

    fn relative_day(&self) -> Option<DateSpan> {
        let days = match (self.token(0), self.token(1)) {
            ("today", _) | ("heute", _) => 0,
            ("yesterday", _) if (self.token(-2), self.token(-1)) == ("day", "before") => -2,
            ("yesterday", _) | ("gestern", _) | ("last", "night") => -1,
            ("vorgestern", _) => -2,
            ("day", "before") if self.token(2) == "yesterday" => -2,
            _ => return None,
        };
        let date = self.today.checked_add(days.days()).ok()?;
        Some(DateSpan::days(date, date))
    }

    /// `three days ago`, `a week ago`, `2 months ago`.
    fn days_ago(&self) -> Option<DateSpan> {
        (self.token(2) == "ago").then_some(())?;
        let count = match self.token(0) {
            "a" | "an" => 1,
            word => match NUMBERS.iter().position(|number| *number == word) {
                Some(index) => i64::try_from(index).ok()? + 1,
                None => word.parse::<i64>().ok().filter(|count| *count < 1_000)?,
            },
        };
        let date = |days: i64| self.today.checked_sub(days.days()).ok();
        Some(match self.token(1) {
            "day" | "days" => DateSpan::days(date(count)?, date(count)?),
            "week" | "weeks" => DateSpan::days(date(7 * count + 3)?, date(7 * count - 3)?),
            "month" | "months" => DateSpan::month(self.month_from_now(-count)?),
            _ => return None,
        })
    }

    /// `last week`, `this month`.
    fn relative_span(&self) -> Option<DateSpan> {
        let steps = match self.token(0) {
            "last" | "past" | "previous" => -1,
            "this" => 0,
            "next" => 1,
            _ => return None,
        };
        match self.token(1) {
            "week" => {
                let monday =
                    self.today.checked_sub(i64::from(self.today.weekday().to_monday_zero_offset()).days());
                let monday = monday.ok()?.checked_add((7 * steps).days()).ok()?;
                Some(DateSpan::days(monday, monday.checked_add(6.days()).ok()?))
            }
            "month" => Some(DateSpan::month(self.month_from_now(steps)?)),
            _ => None,
        }
    }

    fn month_from_now(&self, steps: i64) -> Option<Date> {
        self.today.first_of_month().checked_add(steps.months()).ok()
    }

    /// `on Monday`, `last Monday`: the last one before today.
    fn weekday(&self) -> Option<DateSpan> {
        let (_, weekday) = WEEKDAYS.iter().find(|(name, _)| *name == self.token(0))?;
        matches!(self.token(-1), "on" | "last").then_some(())?;
        let date = self.today.nth_weekday(-1, *weekday).ok()?;
        Some(DateSpan::days(date, date))
    }

    /// `5 March`, `March 5th, 2026`, `in March`.
    fn month(&self) -> Option<DateSpan> {
        let name = self.token(0);
        let is_short = name.len() == 3 && name != "may";
        let month = MONTHS.iter().position(|month| *month == name || is_short && month.starts_with(name))?;
        let month = i8::try_from(month).ok()? + 1;
        let before = if self.token(-1) == "of" { self.token(-2) } else { self.token(-1) };
        let day_before = day_of_month(before);
        let day = day_before.or_else(|| day_of_month(self.token(1)));
        let year = match (day, day_before) {
            (Some(_), None) => year(self.token(2)),
            _ => year(self.token(1)),
        };
        let Some(day) = day else {
            // `may` and `march` are verbs too.
            let is_name = self.tokens[self.index].text.starts_with(char::is_uppercase) && self.index > 0;
            let is_led_in = matches!(self.token(-1), "in" | "since" | "last" | "of" | "during" | "until");
            (!is_short && (is_name || is_led_in || year.is_some())).then_some(())?;
            return Some(DateSpan::month(self.in_year(year, month, 1)?));
        };
        let date = self.in_year(year, month, day)?;
        Some(DateSpan::days(date, date))
    }

    fn in_year(&self, year: Option<i16>, month: i8, day: i8) -> Option<Date> {
        let this = self.today.year();
        if let Some(year) = year {
            return Date::new(year, month, day).ok();
        }
        let years = [this - 1, this, this + 1].into_iter();
        let dates = years.filter_map(|year| Date::new(year, month, day).ok());
        match self.tense {
            Tense::Past => dates.filter(|date| *date <= self.today).max(),
            Tense::Nearest => dates.min_by_key(|date| (number(*date) - number(self.today)).abs()),
        }
    }
}

fn is_digits(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit())
}

fn year(token: &str) -> Option<i16> {
    (token.len() == 4 && is_digits(token))
        .then(|| token.parse().ok())?
        .filter(|year| (1_900..2_100).contains(year))
}

/// `5`, `5th`.
fn day_of_month(token: &str) -> Option<i8> {
    let digits = token.trim_end_matches(char::is_alphabetic);
    let ending = &token[digits.len()..];
    matches!(ending, "" | "st" | "nd" | "rd" | "th")
        .then(|| digits.parse().ok())?
        .filter(|day| (1..=31).contains(day))
}

fn number(date: Date) -> Day {
    EPOCH.until(date).map_or(0, |span| span.get_days())
}

#[cfg(test)]
#[path = "dates_tests.rs"]
mod tests;
