//! Expressions over a file's columns, where class keys read dictionaries as they are.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};

use super::{TakesDictionaries, is_key};

/// Other adapters, or the engine's, without casts of dictionaries below class keys.
#[derive(Debug)]
pub(super) struct PackedAdapters {
    pub(super) adapters: Option<Arc<dyn PhysicalExprAdapterFactory>>,
    pub(super) takes_dictionaries: TakesDictionaries,
}

impl PhysicalExprAdapterFactory for PackedAdapters {
    fn create(&self, logical: SchemaRef, physical: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let (of_table, of_file) = (logical, Arc::clone(&physical));
        let adapter = match &self.adapters {
            Some(adapters) => adapters.create(of_table, of_file)?,
            None => DefaultPhysicalExprAdapterFactory.create(of_table, of_file)?,
        };
        Ok(Arc::new(PackedAdapter { adapter, physical, takes_dictionaries: self.takes_dictionaries }))
    }
}

#[derive(Debug)]
struct PackedAdapter {
    adapter: Arc<dyn PhysicalExprAdapter>,
    physical: SchemaRef,
    takes_dictionaries: TakesDictionaries,
}

impl PhysicalExprAdapter for PackedAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let rewritten = self.adapter.rewrite(expr)?.transform_down(|part| match is_key(&part) {
            true => self.without_casts(&part).map(|key| Transformed::new(key, true, TreeNodeRecursion::Jump)),
            false => Ok(Transformed::no(part)),
        });
        rewritten.data()
    }
}

impl PackedAdapter {
    /// Returns a class key, or a function of codes below one, without casts of dictionaries below it.
    fn without_casts(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            let is_packed = cast.expr().downcast_ref::<Column>().is_some()
                && matches!(cast.expr().data_type(&self.physical)?, DataType::Dictionary(_, of) if of.is_string())
                && cast.cast_type().is_string();
            return Ok(Arc::clone(if is_packed { cast.expr() } else { expr }));
        }
        let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() else { return Ok(Arc::clone(expr)) };
        if !is_key(expr) && !(self.takes_dictionaries)(call.fun()) {
            return Ok(Arc::clone(expr));
        }
        let arguments =
            call.args().iter().map(|argument| self.without_casts(argument)).collect::<Result<Vec<_>>>()?;
        let (function, options) = (Arc::new(call.fun().clone()), Arc::new(call.config_options().clone()));
        Ok(Arc::new(ScalarFunctionExpr::try_new(function, arguments, &self.physical, options)?))
    }
}

#[cfg(test)]
#[path = "adapters_tests.rs"]
mod tests;
