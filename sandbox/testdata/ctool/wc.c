/* A tool that is not written in Go: counts lines and bytes of the files named on its command line, reads its standard
   input, and writes a summary into the workspace. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>

int main(int argc, char **argv) {
	char in[256] = {0};
	fread(in, 1, sizeof in - 1, stdin);
	printf("%s in=%s home=%s\n", argv[0], in, getenv("HOME") ? "set" : "unset");
	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "r");
		if (!f) {
			fprintf(stderr, "%s: %s\n", argv[i], strerror(errno));
			return 1;
		}
		long lines = 0, bytes = 0;
		for (int c; (c = fgetc(f)) != EOF; bytes++)
			lines += c == '\n';
		fclose(f);
		printf("%ld %ld %s\n", lines, bytes, argv[i]);
	}
	char *pwd = getenv("PWD"), path[4096];
	snprintf(path, sizeof path, "%s/summary", pwd ? pwd : "");
	FILE *f = fopen(path, "w");
	if (!f) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	fprintf(f, "%d files\n", argc - 1);
	return fclose(f) != 0;
}
