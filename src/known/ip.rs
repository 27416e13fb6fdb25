//! `ip`: an IP address becomes its network: /24, /16 and /8 of IPv4, /64, /48 and /32 of IPv6.
//!
//! Reads text as Rust's `std::net` does: four decimal numbers without leading zeros, or the forms of
//! RFC 4291 for IPv6; no port, prefix length, brackets or zone. An IPv4 address inside an IPv6 one
//! (`::ffff:192.0.2.1`) counts as the IPv4 address. Labels are in the form of RFC 5952:
//! `192.0.2.0/24`, `2001:db8::/32`. A /64 is often one household, like a /32 of IPv4.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Input, KnownRow, Rule};
use crate::doc::Doc;

/// The row of [`KNOWN`](super::KNOWN) for this hierarchy.
pub const ROW: KnownRow = KnownRow {
    doc: &Doc {
        name: "ip",
        summary: "an IP address to its networks: /24, /16 and /8 of IPv4, /64, /48 and /32 of IPv6",
        parameters: "",
        example: "hierarchy = { known = \"ip\" }",
        paper: None,
    },
    words: &[],
    levels: &["subnet", "site", "provider"],
    input: Input::Text,
    source: "IPv4 and IPv6 addresses",
    rule: || &Ip,
};

/// The rule that the [module](self) describes.
struct Ip;

impl Rule for Ip {
    fn label(&self, text: &str, level: usize) -> Option<Cow<'static, str>> {
        let (of_4, of_6) = match level {
            1 => (24, 64),
            2 => (16, 48),
            3 => (8, 32),
            _ => return None,
        };
        let label = match text.parse::<IpAddr>().ok()?.to_canonical() {
            IpAddr::V4(address) => {
                let network = address.to_bits() & (u32::MAX << (32 - of_4));
                format!("{}/{of_4}", Ipv4Addr::from_bits(network))
            }
            IpAddr::V6(address) => {
                let network = address.to_bits() & (u128::MAX << (128 - of_6));
                format!("{}/{of_6}", Ipv6Addr::from_bits(network))
            }
        };
        Some(label.into())
    }

    fn label_naively(&self, text: &str, level: usize) -> Option<String> {
        let kept = 4_usize.checked_sub(level).filter(|kept| (1..=3).contains(kept))?;
        let of_4 = |parts: [u8; 4]| {
            let part = |at: usize| if at < kept { parts[at] } else { 0 };
            format!("{}.{}.{}.{}/{}", part(0), part(1), part(2), part(3), 8 * kept)
        };
        match text.parse::<IpAddr>().ok()? {
            IpAddr::V4(address) => Some(of_4(address.octets())),
            IpAddr::V6(address) => match address.segments() {
                [0, 0, 0, 0, 0, 0xffff, ..] => {
                    let [.., a, b, c, d] = address.octets();
                    Some(of_4([a, b, c, d]))
                }
                parts => {
                    // The zeros behind the network are the longest run, and take those before along.
                    let mut network = parts[..kept + 1].to_vec();
                    while network.last() == Some(&0) {
                        network.pop();
                    }
                    let network: Vec<String> = network.iter().map(|part| format!("{part:x}")).collect();
                    Some(format!("{}::/{}", network.join(":"), 16 * (kept + 1)))
                }
            },
        }
    }

    fn is_label(&self, label: &str, level: usize) -> bool {
        let network = label.split_once('/').map(|(network, _)| network);
        network.and_then(|network| self.label(network, level)).is_some_and(|own| own == label)
    }

    fn examples(&self) -> Vec<String> {
        [
            "192.0.2.1",
            "192.0.2.255",
            "192.0.3.1",
            "10.0.0.1",
            "::1",
            "2001:db8::1",
            "2001:db8:0:1::1",
            "2001:db8:5::",
            "::ffff:10.0.0.2",
            "0:0:1::1",
        ]
        .map(str::to_owned)
        .into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::known::tests::labels;

    #[test]
    fn addresses_by_hand() {
        for (value, path) in [
            ("203.0.113.77", "203.0.113.0/24 < 203.0.0.0/16 < 203.0.0.0/8"),
            ("::ffff:203.0.113.77", "203.0.113.0/24 < 203.0.0.0/16 < 203.0.0.0/8"),
            ("2001:DB8:85a3:8d3::8a2e", "2001:db8:85a3:8d3::/64 < 2001:db8:85a3::/48 < 2001:db8::/32"),
            ("0:0:0:1:2:3:4:5", "0:0:0:1::/64 < ::/48 < ::/32"),
        ] {
            assert_eq!(labels("ip", value).as_deref(), Some(path), "{value}");
        }
        for outside in [
            "203.0.113",
            "203.0.113.256",
            "203.0.113.07",
            "[::1]",
            "fe80::1%eth0",
            "10.0.0.1:80",
            "10.0.0.0/8",
            "localhost",
        ] {
            assert_eq!(labels("ip", outside), None, "{outside}");
        }
    }

    proptest! {
        #[test]
        fn all_addresses_agree(parts in prop::array::uniform8(prop_oneof![3 => Just(0_u16), 1 => any::<u16>()]), old in any::<u32>()) {
            for address in [IpAddr::from(Ipv6Addr::from(parts)), IpAddr::from(Ipv4Addr::from_bits(old))] {
                prop_assert!(labels("ip", &address.to_string()).is_some());
            }
        }
    }
}
