//! How a time is written in a query (protocol.md 6.9.1).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Reads a time: `2026-11-30T12:00:00Z`, with an offset in place of the `Z` or with nothing (UTC), with a space (or the
/// `+` of a form) in place of the `T`, with up to nine digits of a second; or the seconds (up to 11 digits) or
/// milliseconds (12 and more) since 1970. What lies before 1970 or beyond the year 9999 is none.
pub(super) fn parse(text: &[u8]) -> Option<SystemTime> {
    let since = if text.iter().all(u8::is_ascii_digit) {
        let number = digits(text)?;
        if text.len() <= MOST_DIGITS_OF_SECONDS {
            Duration::from_secs(number)
        } else {
            Duration::from_millis(number)
        }
    } else {
        since_1970(text)?
    };
    (since < END).then(|| UNIX_EPOCH + since)
}

fn since_1970(text: &[u8]) -> Option<Duration> {
    let (date, rest) = text.split_at_checked(10)?;
    let (&separator, rest) = rest.split_first()?;
    let (clock, rest) = rest.split_at_checked(8)?;
    if !matches!(separator, b'T' | b't' | b' ' | b'+') {
        return None;
    }
    let [year, month, day] = numbers(date, [4, 2, 2], b'-')?;
    let [hour, minute, second] = numbers(clock, [2, 2, 2], b':')?;
    // A leap second is the one before it: no clock here counts it.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let second = second.min(59);
    let (nanos, zone) = fraction(rest)?;
    let local = days(year, month, day)? * 86_400 + hour * 3600 + minute * 60 + second;
    let utc = local.checked_sub(offset(zone)?)?;
    Some(Duration::new(u64::try_from(utc).ok()?, nanos))
}

/// Numbers of so many digits with something between them.
fn numbers(text: &[u8], lengths: [usize; 3], between: u8) -> Option<[i64; 3]> {
    let mut parts = text.split(|&byte| byte == between);
    let mut read = [0; 3];
    for (number, length) in read.iter_mut().zip(lengths) {
        let part = parts.next().filter(|part| part.len() == length)?;
        *number = i64::try_from(digits(part)?).ok()?;
    }
    parts.next().is_none().then_some(read)
}

/// The nanoseconds behind a point, and what comes behind them.
fn fraction(text: &[u8]) -> Option<(u32, &[u8])> {
    let Some(text) = text.strip_prefix(b".") else {
        return Some((0, text));
    };
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (part, rest) = text.split_at(length);
    if !(1..=9).contains(&length) {
        return None;
    }
    let scale = 10_u32.pow(9 - u32::try_from(length).ok()?);
    Some((u32::try_from(digits(part)?).ok()? * scale, rest))
}

/// The seconds that a zone is ahead of UTC.
fn offset(text: &[u8]) -> Option<i64> {
    let (sign, rest) = match text {
        [] | [b'Z' | b'z'] => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest {
        [h, i, b':', m, n] | [h, i, m, n] => ([*h, *i], [*m, *n]),
        _ => return None,
    };
    let (hours, minutes) = (digits(&hours)?, digits(&minutes)?);
    let seconds = i64::try_from(hours * 3600 + minutes * 60).ok()?;
    (hours <= 23 && minutes <= 59).then_some(sign * seconds)
}

/// Days from 1970-01-01 to a day of the Gregorian calendar that there is.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=longest).contains(&day) {
        return None;
    }
    // Counted from March on, so that the day that is sometimes there is the last one.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    Some(365 * year + leap_days + day_of_year - DAYS_TO_1970)
}

fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| byte - b'0')?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// The seconds of the year 5138 have 12 digits, and the milliseconds of September 2001 have 12 as well.
const MOST_DIGITS_OF_SECONDS: usize = 11;
/// From 0000-03-01.
const DAYS_TO_1970: i64 = 719_468;
/// 10000-01-01, from where on no time can be written.
const END: Duration = Duration::from_secs(253_402_300_800);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let time =
            parse(text.as_bytes()).map(|time| humantime::format_rfc3339_nanos(time).to_string());
        assert_eq!(time.as_deref(), expected, "{text}");
    }

    #[test]
    fn every_way_to_write_a_time_is_read() {
        let noon = Some("2026-11-30T12:00:00.000000000Z");
        for text in [
            "2026-11-30T12:00:00Z",
            "2026-11-30t12:00:00z",
            "2026-11-30 12:00:00Z",
            "2026-11-30 12:00:00",
            "2026-11-30T12:00:00",
            "2026-11-30+12:00:00",
            "2026-11-30T12:00:00.0Z",
            "2026-11-30T12:00:00+00:00",
            "2026-11-30T12:00:00-00:00",
            "2026-11-30T14:00:00+02:00",
            "2026-11-30T14:00:00+0200",
            "2026-11-30T01:30:00-10:30",
            "2026-12-01T11:59:00+23:59",
            "1796040000",
            "1796040000000",
            "01796040000",
        ] {
            check(text, noon);
        }
        check("0", Some("1970-01-01T00:00:00.000000000Z"));
        check("99999999999", Some("5138-11-16T09:46:39.000000000Z"));
        check("100000000000", Some("1973-03-03T09:46:40.000000000Z"));
        check(
            "2028-02-29 23:59:60.5",
            Some("2028-02-29T23:59:59.500000000Z"),
        );
        check(
            "2026-11-30T12:00:00.123456789Z",
            Some("2026-11-30T12:00:00.123456789Z"),
        );
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            " ",
            "-1",
            "1.5",
            "now",
            "2026-11-30",
            "2026-11-30T12:00",
            "2026-11-30T12:00:00.",
            "2026-11-30T12:00:00.1234567890Z",
            "2026-11-30T12:00:00 Z",
            "2026-11-30T12:00:00+2",
            "2026-11-30T12:00:00+02",
            "2026-11-30T12:00:00+24:00",
            "2026-11-30T12:00:00+02:60",
            "2026-11-30T24:00:00Z",
            "2026-11-30T12:60:00Z",
            "2026-11-30T12:00:61Z",
            "2026-02-29T12:00:00Z",
            "2026-04-31T12:00:00Z",
            "2026-13-01T12:00:00Z",
            "2026-00-01T12:00:00Z",
            "2026-01-00T12:00:00Z",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
            "2026-11-30T12:00:00Zz",
            "26-11-30T12:00:00Z",
            "2026-1-30T012:00:00Z",
            "99999999999999999999",
            "253402300800000",
        ] {
            check(text, None);
        }
    }

    proptest! {
        #[test]
        fn a_time_that_is_written_is_read(millis in 0..253_402_300_800_000_u64, ahead in -1439_i64..1440) {
            let time = UNIX_EPOCH + Duration::from_millis(millis);
            prop_assert_eq!(parse(millis_text(millis).as_bytes()), Some(time));
            let utc = humantime::format_rfc3339_millis(time).to_string();
            prop_assert_eq!(parse(utc.as_bytes()), Some(time));
            prop_assert_eq!(parse(utc.replace('T', " ").trim_end_matches('Z').as_bytes()), Some(time));
            let local = millis.checked_add_signed(ahead * 60_000).filter(|it| *it < 253_402_300_800_000);
            if let Some(local) = local {
                let local = humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(local));
                let sign = if ahead < 0 { '-' } else { '+' };
                let (hours, minutes) = (ahead.abs() / 60, ahead.abs() % 60);
                let zone = format!("{sign}{hours:02}:{minutes:02}");
                let text = local.to_string().replace('Z', &zone);
                prop_assert_eq!(parse(text.as_bytes()), Some(time));
            }
        }

        #[test]
        fn nothing_is_taken_badly(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse(&text);
        }
    }

    /// Twelve digits at least, or it would be seconds.
    fn millis_text(millis: u64) -> String {
        format!("{millis:012}")
    }
}
