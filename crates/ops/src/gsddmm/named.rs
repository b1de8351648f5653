//! Lists the named operators of two operands.

/// Calls a macro with the list: name, operator, operands, and the value of an edge `e = (u, v)`.
macro_rules! with_binaries {
    ($then:ident) => {
        $then! {
            u_add_v, Add, Src, Dst, "lhs[u] + rhs[v]";
            v_add_u, Add, Dst, Src, "lhs[v] + rhs[u]";
            u_add_e, Add, Src, Edge, "lhs[u] + rhs[e]";
            e_add_u, Add, Edge, Src, "lhs[e] + rhs[u]";
            v_add_e, Add, Dst, Edge, "lhs[v] + rhs[e]";
            e_add_v, Add, Edge, Dst, "lhs[e] + rhs[v]";
            u_sub_v, Sub, Src, Dst, "lhs[u] - rhs[v]";
            v_sub_u, Sub, Dst, Src, "lhs[v] - rhs[u]";
            u_sub_e, Sub, Src, Edge, "lhs[u] - rhs[e]";
            e_sub_u, Sub, Edge, Src, "lhs[e] - rhs[u]";
            v_sub_e, Sub, Dst, Edge, "lhs[v] - rhs[e]";
            e_sub_v, Sub, Edge, Dst, "lhs[e] - rhs[v]";
            u_mul_v, Mul, Src, Dst, "lhs[u] · rhs[v]";
            v_mul_u, Mul, Dst, Src, "lhs[v] · rhs[u]";
            u_mul_e, Mul, Src, Edge, "lhs[u] · rhs[e]";
            e_mul_u, Mul, Edge, Src, "lhs[e] · rhs[u]";
            v_mul_e, Mul, Dst, Edge, "lhs[v] · rhs[e]";
            e_mul_v, Mul, Edge, Dst, "lhs[e] · rhs[v]";
            u_div_v, Div, Src, Dst, "lhs[u] / rhs[v]";
            v_div_u, Div, Dst, Src, "lhs[v] / rhs[u]";
            u_div_e, Div, Src, Edge, "lhs[u] / rhs[e]";
            e_div_u, Div, Edge, Src, "lhs[e] / rhs[u]";
            v_div_e, Div, Dst, Edge, "lhs[v] / rhs[e]";
            e_div_v, Div, Edge, Dst, "lhs[e] / rhs[v]";
            u_dot_v, Dot, Src, Dst, "⟨lhs[u], rhs[v]⟩";
            v_dot_u, Dot, Dst, Src, "⟨lhs[v], rhs[u]⟩";
            u_dot_e, Dot, Src, Edge, "⟨lhs[u], rhs[e]⟩";
            e_dot_u, Dot, Edge, Src, "⟨lhs[e], rhs[u]⟩";
            v_dot_e, Dot, Dst, Edge, "⟨lhs[v], rhs[e]⟩";
            e_dot_v, Dot, Edge, Dst, "⟨lhs[e], rhs[v]⟩";
        }
    };
}

pub(crate) use with_binaries;
