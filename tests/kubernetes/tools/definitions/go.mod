// Nothing is built here: recipe.sh takes files out of modules.
module lockstep/tests/kubernetes/tools/definitions

go 1.26.0
