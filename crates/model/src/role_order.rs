//! Finds the order of roles that a server accepts.
//!
//! After a refusal the same request is sent in a plainer order, until the server accepts one or none is left. The
//! accepted order is used for the server from then on. A refusal may give no reason although the order of roles is
//! the cause. So the plainest usual order is then tried, once for each server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longhaul_protocol::Hash;

use crate::codec::EncodeInput;
use crate::effort::SentEffort;
use crate::endpoint::Endpoint;
use crate::learned_capabilities::{LearnedCapabilities, LearnedRoles, ServedModel};
use crate::{FailureClass, ModelFailure, Request, RoleOrder};

/// How often one request may be sent again in another order. There are fewer orders than this.
pub const MAX_ROLE_REORDERS: u32 = 6;

/// The order of roles that one model of one server gets.
pub(crate) struct RoleOrders {
    learned: Arc<LearnedCapabilities>,
    model: ServedModel,
    state: Mutex<RoleOrderState>,
}

#[derive(Clone, Copy)]
struct RoleOrderState {
    accepted: RoleOrder,
    /// The order that is being tried after a refusal.
    trial: Option<RoleOrder>,
    /// The hash of the request that was refused without a reason, if the trial is a guess. The order was the reason
    /// only if the server accepts the same request in the other order.
    guessed_for: Option<Hash>,
    /// The one guess for this server is used up.
    has_guessed: bool,
}

impl RoleOrders {
    pub(crate) fn new(endpoint: &Endpoint, learned: Arc<LearnedCapabilities>) -> Self {
        let model = endpoint.served_model();
        let declared = endpoint.quirks.roles;
        let known = learned.get(&model).roles.filter(|known| known.declared == declared);
        let accepted = known.map_or(declared, |known| known.accepted);
        let state = RoleOrderState { accepted, trial: None, guessed_for: None, has_guessed: false };
        Self { learned, model, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, RoleOrderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct RoleCheck {
    orders: Arc<RoleOrders>,
    endpoint: Arc<Endpoint>,
    request: Request,
    effort: Option<SentEffort>,
    order: RoleOrder,
    is_settled: bool,
}

impl RoleCheck {
    pub(crate) fn new(
        orders: Arc<RoleOrders>,
        endpoint: Arc<Endpoint>,
        request: Request,
        effort: Option<SentEffort>,
    ) -> Self {
        let state = *orders.state();
        let mut check = Self { orders, endpoint, request, effort, order: state.accepted, is_settled: false };
        if let Some(trial) = state.trial
            && state.guessed_for.is_none_or(|refused| refused == Hash::of(check.body()))
        {
            check.order = trial;
        }
        check
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        self.body_in(self.order)
    }

    fn body_in(&self, roles: RoleOrder) -> Vec<u8> {
        let endpoint = &self.endpoint;
        endpoint.protocol.encode(&EncodeInput {
            request: &self.request,
            model: &endpoint.model,
            author: &endpoint.name,
            quirks: &endpoint.quirks,
            roles,
            reasons: endpoint.entry.as_ref().is_some_and(|entry| entry.reasons),
            effort: self.effort,
            effort_off: endpoint.entry.as_ref().and_then(|entry| entry.effort_off.as_deref()),
        })
    }

    /// The server has begun to answer. An order on trial is kept if it makes a difference for this request.
    pub(crate) fn accepted(&mut self) {
        if std::mem::replace(&mut self.is_settled, true) {
            return;
        }
        let state = *self.orders.state();
        if state.trial != Some(self.order) || self.body() == self.body_in(state.accepted) {
            return;
        }
        *self.orders.state() =
            RoleOrderState { accepted: self.order, trial: None, guessed_for: None, ..state };
        let roles = LearnedRoles { declared: self.endpoint.quirks.roles, accepted: self.order };
        self.orders.learned.learn(&self.orders.model, |lesson| lesson.roles = Some(roles));
    }

    /// Judges a refusal. Returns [`FailureClass::RoleOrder`] if the server may accept the same request in another
    /// order, and uses that order from then on.
    pub(crate) fn refused(&mut self, failure: ModelFailure) -> ModelFailure {
        let is_named = failure.class == FailureClass::RoleOrder;
        let is_opaque = failure.class == FailureClass::Invalid && matches!(failure.status, Some(400 | 422));
        if !(is_named || is_opaque) {
            return failure;
        }
        if std::mem::replace(&mut self.is_settled, true) {
            // The server had begun to answer, so it does accept the order. The answer broke off.
            return ModelFailure {
                class: if is_named { FailureClass::Broken } else { failure.class },
                ..failure
            };
        }
        let mut state = self.orders.state();
        if state.guessed_for.is_none() && state.trial.unwrap_or(state.accepted) != self.order {
            return self.endpoint.will_reorder_roles(failure);
        }
        let body = self.body();
        let is_other = |order: &RoleOrder| self.body_in(*order) != body;
        let next = if is_named {
            self.order.plainer_orders().find(is_other)
        } else if state.has_guessed {
            None
        } else {
            state.has_guessed = true;
            let plain = RoleOrder::Alternating;
            Some(plain).filter(|plain| *plain > self.order).filter(is_other)
        };
        if next.is_some() || state.trial == Some(self.order) {
            state.trial = next;
            state.guessed_for = next.filter(|_| is_opaque).map(|_| Hash::of(&body));
        }
        match next {
            Some(_) => self.endpoint.will_reorder_roles(failure),
            None => self.endpoint.no_role_order_left(failure),
        }
    }
}
