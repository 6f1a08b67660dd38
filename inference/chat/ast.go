package chat

// Expressions and statements of a template. Each node keeps its line for errors.
type (
	expr interface{ pos() int }
	stmt interface{ pos() int }
	at   int // line
)

func (a at) pos() int { return int(a) }

type (
	constExpr struct {
		at
		v Value
	}
	nameExpr struct {
		at
		name string
	}
	listExpr struct {
		at
		items []expr
		tuple bool
	}
	dictExpr struct {
		at
		keys, vals []expr
	}
	// notExpr and negExpr are prefix operators; plus is negExpr without neg.
	notExpr struct {
		at
		x expr
	}
	negExpr struct {
		at
		x   expr
		neg bool
	}
	// binExpr is an arithmetic operator, "and" or "or".
	binExpr struct {
		at
		op   string
		l, r expr
	}
	concatExpr struct {
		at
		parts []expr
	}
	// cmpExpr is a chain: first op[0] rest[0] op[1] rest[1] ...
	cmpExpr struct {
		at
		first expr
		ops   []string
		rest  []expr
	}
	condExpr struct {
		at
		cond, yes expr
		no        expr // nil: undefined
	}
	attrExpr struct {
		at
		x    expr
		name string
	}
	indexExpr struct {
		at
		x, i expr
	}
	sliceExpr struct {
		at
		from, to, step expr // each may be nil
	}
	callExpr struct {
		at
		f    expr
		args callArgs
	}
	filterExpr struct {
		at
		x    expr // nil: the body of a filter or set block
		name string
		args callArgs
	}
	testExpr struct {
		at
		x    expr
		name string
		args callArgs
	}
)

// callArgs are the arguments of a call as written.
type callArgs struct {
	pos         []expr
	kw          []string
	kwVals      []expr
	rest, kwAll expr // *x and **x, or nil
}

type (
	dataStmt struct {
		at
		s string
	}
	printStmt struct {
		at
		x expr
	}
	ifStmt struct {
		at
		conds  []expr
		bodies [][]stmt
		els    []stmt
	}
	forStmt struct {
		at
		target    *target
		iter      expr
		cond      expr // nil: every item
		recursive bool
		body, els []stmt
	}
	setStmt struct {
		at
		target *target
		x      expr
	}
	// setBlockStmt stores the output of its body, put through filter if any.
	setBlockStmt struct {
		at
		target *target
		filter expr
		body   []stmt
	}
	macroStmt struct {
		at
		name     string
		params   []string
		defaults []expr // nil where the parameter has none
		body     []stmt
		// What the body mentions decides what a call may pass.
		varargs, kwargs, caller bool
	}
	callStmt struct {
		at
		call   *callExpr
		caller *macroStmt
	}
	filterStmt struct {
		at
		filter expr
		body   []stmt
	}
	withStmt struct {
		at
		targets []*target
		vals    []expr
		body    []stmt
	}
	// scopeStmt is a body with variables of its own: generation, block.
	scopeStmt struct {
		at
		body []stmt
	}
	breakStmt    struct{ at }
	continueStmt struct{ at }
)

// target is what an assignment assigns to: a name, an attribute of a namespace
// (ns and name), or several targets.
type target struct {
	line int
	name string
	ns   string
	list []*target
}
