//! Rules in CEL that an API server holds values against, each with a message that names the fix. It refuses to be
//! needed: the reconciler answers the same mistakes where no server has looked, as in a directory of files.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

const VALIDATIONS: &str = "x-kubernetes-validations";
/// Told apart from host bits, so that each has its own message.
const NO_CIDR: &str = "write a prefix, as in 10.0.0.0/24 or 2001:db8::/48";

fn cidr_rules() -> Value {
    json!([
        {"rule": "isCIDR(self)", "message": NO_CIDR},
        {
            "rule": "!isCIDR(self) || cidr(self) == cidr(self).masked()",
            "message": "the prefix has host bits: set them to zero, as in 10.0.0.0/24",
        },
    ])
}

/// Every item is a prefix without host bits.
pub(crate) fn each_cidr(schema: &mut Schema) {
    if let Some(items) = schema.get_mut("items").and_then(Value::as_object_mut) {
        items.insert(VALIDATIONS.to_owned(), cidr_rules());
    }
}

/// A prefix without host bits that stays what it is; empty: not given yet.
pub(crate) fn lasting_cidr(schema: &mut Schema) {
    schema.insert(
        VALIDATIONS.to_owned(),
        json!([
            {"rule": "self == '' || isCIDR(self)", "message": NO_CIDR},
            {
                "rule": "!isCIDR(self) || cidr(self) == cidr(self).masked()",
                "message": "cidr has host bits: set them to zero, as in 10.0.0.0/24",
            },
            {
                "rule": "oldSelf == '' || self == oldSelf",
                "message": "cidr cannot be changed: make a new GatewayNetwork with the other cidr",
            },
        ]),
    );
}

/// An address without a prefix length.
pub(crate) fn address(schema: &mut Schema) {
    let message = "write an address without a prefix length, as in 10.0.0.1 or 2001:db8::1";
    schema.insert(VALIDATIONS.to_owned(), json!([{"rule": "isIP(self)", "message": message}]));
}

/// A DNS name or an address, and nothing around it.
pub(crate) fn host(schema: &mut Schema) {
    let rule = "isIP(self) || self.matches('^[A-Za-z0-9_]([-A-Za-z0-9_.]*[A-Za-z0-9_])?[.]?$')";
    let message = "write a DNS name or an address, without scheme, brackets or port; ports stand in `ports`";
    schema.insert(VALIDATIONS.to_owned(), json!([{"rule": rule, "message": message}]));
}

/// The roles that listen; words beside those of the enum would be joined with them.
pub(crate) fn listener_role(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["downlink", "mesh", "trunk"]})
}

/// The derived schema of an optional enum would take the description of the enum for that of the field.
pub(crate) fn optional_role(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "enum": ["hub", "spoke"]})
}

/// See [`optional_role`].
pub(crate) fn optional_link_role(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "enum": ["uplink", "downlink", "trunk", "mesh"]})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkRole, Role};

    #[test]
    fn words_are_those_of_the_enums() {
        let generator = &mut SchemaGenerator::default();
        let roles = json!([Role::Hub, Role::Spoke]);
        let links = json!([LinkRole::Uplink, LinkRole::Downlink, LinkRole::Trunk, LinkRole::Mesh]);
        let listeners = json!([LinkRole::Downlink, LinkRole::Mesh, LinkRole::Trunk]);
        assert_eq!(optional_role(generator).get("enum"), Some(&roles));
        assert_eq!(optional_link_role(generator).get("enum"), Some(&links));
        assert_eq!(listener_role(generator).get("enum"), Some(&listeners));
    }
}
