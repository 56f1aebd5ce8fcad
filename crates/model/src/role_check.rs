//! Finding the order of roles that a server accepts.
//!
//! A server that refuses an order is sent the same request in a plainer one, until one is accepted or none is left. The order that
//! was accepted is kept for the server. Where a refusal gives no reason, the order of roles may be the cause: the plainest usual
//! order is tried once for each server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longhaul_protocol::Hash;

use crate::codec::Asked;
use crate::learned::{LearnedCapabilities, LearnedRoles, ServedModel};
use crate::target::Endpoint;
use crate::{FailureClass, ModelFailure, Request, RoleOrder};

/// How often one request may be sent again in another order of roles. There are fewer orders than this.
pub const MAX_ROLE_REORDERS: u32 = 6;

/// The order of roles that is used for one model of one server.
pub(crate) struct RoleOrders {
    learned: Arc<LearnedCapabilities>,
    model: ServedModel,
    state: Mutex<State>,
}

#[derive(Clone, Copy)]
struct State {
    accepted: RoleOrder,
    /// An order that is tried after a refusal.
    trial: Option<RoleOrder>,
    /// The request that was refused without a reason, where the trial is a guess. Only the same request, accepted in the other order,
    /// shows that the order was the reason.
    guessed_for: Option<Hash>,
    /// A guess was made. There is one for each server.
    has_guessed: bool,
}

impl RoleOrders {
    pub(crate) fn new(target: &Endpoint, learned: Arc<LearnedCapabilities>) -> Self {
        let model = target.served_model();
        let declared = target.quirks.roles;
        let known = learned.about(&model).roles.filter(|known| known.declared == declared);
        let accepted = known.map_or(declared, |known| known.accepted);
        let state = State { accepted, trial: None, guessed_for: None, has_guessed: false };
        Self { learned, model, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request in one order of roles.
pub(crate) struct RoleCheck {
    orders: Arc<RoleOrders>,
    target: Arc<Endpoint>,
    request: Request,
    order: RoleOrder,
    is_over: bool,
}

impl RoleCheck {
    /// A request in the order that is used now.
    pub(crate) fn new(orders: Arc<RoleOrders>, target: Arc<Endpoint>, request: Request) -> Self {
        let state = *orders.state();
        let mut check = Self { orders, target, request, order: state.accepted, is_over: false };
        if let Some(trial) = state.trial
            && state.guessed_for.is_none_or(|refused| refused == Hash::of(check.body()))
        {
            check.order = trial;
        }
        check
    }

    /// The body of the request.
    pub(crate) fn body(&self) -> Vec<u8> {
        self.body_in(self.order)
    }

    fn body_in(&self, roles: RoleOrder) -> Vec<u8> {
        let target = &self.target;
        target.protocol.encode(&Asked {
            request: &self.request,
            model: &target.model,
            author: &target.name,
            quirks: &target.quirks,
            roles,
            reasons: target.entry.as_ref().is_some_and(|entry| entry.reasons),
        })
    }

    /// The server has begun to answer. An order that was on trial is kept, if the request shows the difference.
    pub(crate) fn accepted(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let state = *self.orders.state();
        if state.trial != Some(self.order) || self.body() == self.body_in(state.accepted) {
            return;
        }
        *self.orders.state() = State { accepted: self.order, trial: None, guessed_for: None, ..state };
        let roles = LearnedRoles { declared: self.target.quirks.roles, accepted: self.order };
        self.orders.learned.learn(&self.orders.model, |lesson| lesson.roles = Some(roles));
    }

    /// What a refusal comes to: [`FailureClass::RoleOrder`] where the same request in another order of roles may be accepted. That order
    /// is used from then on.
    pub(crate) fn refused(&mut self, failure: ModelFailure) -> ModelFailure {
        let is_named = failure.class == FailureClass::RoleOrder;
        let is_opaque = failure.class == FailureClass::Invalid && matches!(failure.status, Some(400 | 422));
        if !(is_named || is_opaque) {
            return failure;
        }
        if std::mem::replace(&mut self.is_over, true) {
            // The server had begun to answer, so it accepts the order: the answer broke off.
            return ModelFailure {
                class: if is_named { FailureClass::Broken } else { failure.class },
                ..failure
            };
        }
        let mut state = self.orders.state();
        // Another request has learned something since this one was sent.
        if state.guessed_for.is_none() && state.trial.unwrap_or(state.accepted) != self.order {
            return self.target.another_order(failure);
        }
        let body = self.body();
        let is_other = |order: &RoleOrder| self.body_in(*order) != body;
        let next = if is_named {
            self.order.plainer().find(is_other)
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
            Some(_) => self.target.another_order(failure),
            None => self.target.no_other_order(failure),
        }
    }
}
