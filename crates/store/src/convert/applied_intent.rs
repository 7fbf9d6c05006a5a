//! `AppliedIntent` ⇄ [`AppliedIntent`]. It refuses to drop the moments since which links are wanted.

use spanwire_api as api;
use spanwire_engine as engine;
use spanwire_engine::worker::AppliedIntent;

use super::field::{FieldFault, parse, parse_prefixes, texts};
use super::{
    intent,
    words::{link_role_to_api, link_role_to_engine},
};

/// From the object.
pub(crate) fn to_engine(spec: &api::AppliedIntentSpec) -> Result<AppliedIntent, FieldFault> {
    let api::AppliedIntentSpec { uid, generation, intent, own_subnets, own_host, wanted_since } = spec;
    let wanted = |(index, entry): (usize, &api::WantedSince)| {
        let api::WantedSince { peer, role, boot_id, boot_time } = entry;
        let peer = parse(&format!("spec.wantedSince[{index}].peer"), peer)?;
        let moment = engine::BootTime { boot_id: boot_id.clone(), since_boot: boot_time.0 };
        Ok(((peer, link_role_to_engine(*role)), moment))
    };
    Ok(AppliedIntent {
        intent: intent::to_engine("spec.intent", intent)?,
        uid: engine::Uid(uid.clone()),
        generation: *generation,
        own_subnets: parse_prefixes("spec.ownSubnets", own_subnets)?,
        own_host: own_host.clone(),
        wanted_since: wanted_since.iter().enumerate().map(wanted).collect::<Result<_, _>>()?,
    })
}

/// To the object.
pub(crate) fn to_api(applied: &AppliedIntent) -> api::AppliedIntentSpec {
    let AppliedIntent { intent, uid, generation, own_subnets, own_host, wanted_since } = applied;
    let wanted = |((peer, role), moment): (&(engine::GatewayName, engine::LinkRole), &engine::BootTime)| {
        let engine::BootTime { boot_id, since_boot } = moment;
        api::WantedSince {
            peer: peer.to_string(),
            role: link_role_to_api(*role),
            boot_id: boot_id.clone(),
            boot_time: (*since_boot).into(),
        }
    };
    api::AppliedIntentSpec {
        uid: uid.0.clone(),
        generation: *generation,
        intent: intent::to_api(intent),
        own_subnets: texts(own_subnets),
        own_host: own_host.clone(),
        wanted_since: wanted_since.iter().map(wanted).collect(),
    }
}
