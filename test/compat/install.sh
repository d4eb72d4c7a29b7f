# What the programs beside need, for the recipes that run them: sourced by them. Each function
# works in the directory of a language, and does nothing if it was done before.

# js_install leaves what is installed already: npm notes the lock file that it
# went by.
js_install() {
  [ node_modules/.package-lock.json -nt package-lock.json ] ||
    npm ci --prefer-offline --no-audit --no-fund
}

python_install() {
  [ .venv/installed -nt requirements.txt ] ||
    { python3 -m venv --clear .venv &&
      .venv/bin/pip install --quiet --disable-pip-version-check -r requirements.txt &&
      touch .venv/installed; }
}

java_install() {
  [ target/classpath -nt pom.xml ] ||
    mvn --quiet --batch-mode dependency:build-classpath -Dmdep.outputFile=target/classpath
}

java_compile() {
  rm -rf target/classes &&
    javac -d target/classes -cp "$(cat target/classpath)" ./*.java
}
