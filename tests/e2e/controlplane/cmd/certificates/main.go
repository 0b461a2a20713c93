// certificates FOLDER NAME=USER[,GROUP...]...
//
// Writes what a throwaway control plane needs: an authority (ca.crt), the API server's certificate for loopback
// (apiserver.crt and .key), a key for service-account tokens (service-account.key), and for each NAME a client
// certificate of that user and those groups. An authority that FOLDER has already signs the rest, so that certificates
// can be made anew, or for more users, while clients go on trusting it.
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"log"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const life = 10 * 365 * 24 * time.Hour // longer than any run, also one under a clock that was stepped

type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("use: certificates FOLDER NAME=USER[,GROUP...]...")
	}
	folder := os.Args[1]
	ca := loadOrMakeAuthority(folder)
	if _, err := os.Stat(filepath.Join(folder, "service-account.key")); errors.Is(err, fs.ErrNotExist) {
		// RS256 is what clusters sign with.
		writeKey(folder, "service-account", must(rsa.GenerateKey(rand.Reader, 2048)))
		ca.issue(folder, "apiserver", &x509.Certificate{
			Subject:     pkix.Name{CommonName: "kube-apiserver"},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)},
		})
	}
	for _, each := range os.Args[2:] {
		name, names, _ := strings.Cut(each, "=")
		user := strings.Split(names, ",")
		ca.issue(folder, name, &x509.Certificate{
			Subject:     pkix.Name{CommonName: user[0], Organization: user[1:]},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		})
	}
}

func loadOrMakeAuthority(folder string) authority {
	if text, err := os.ReadFile(filepath.Join(folder, "ca.key")); err == nil {
		certificate, _ := pem.Decode(must(os.ReadFile(filepath.Join(folder, "ca.crt"))))
		key, _ := pem.Decode(text)
		signer := must(x509.ParsePKCS8PrivateKey(key.Bytes)).(crypto.Signer)
		return authority{must(x509.ParseCertificate(certificate.Bytes)), signer}
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "throwaway authority"},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	ca := authority{template, must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))}
	ca.sign(folder, "ca", template, ca.key, x509.KeyUsageCertSign)
	return ca
}

func (ca authority) issue(folder, name string, template *x509.Certificate) {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	ca.sign(folder, name, template, key, x509.KeyUsageDigitalSignature)
}

func (ca authority) sign(folder, name string, template *x509.Certificate, key crypto.Signer, usage x509.KeyUsage) {
	template.SerialNumber = must(rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)))
	template.NotBefore = time.Now().Add(-24 * time.Hour) // clocks apart
	template.NotAfter = template.NotBefore.Add(life)
	template.KeyUsage = usage
	signed := must(x509.CreateCertificate(rand.Reader, template, ca.certificate, key.Public(), ca.key))
	write(folder, name+".crt", "CERTIFICATE", signed)
	writeKey(folder, name, key)
}

func writeKey(folder, name string, key crypto.Signer) {
	write(folder, name+".key", "PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key)))
}

func write(folder, name, kind string, content []byte) {
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
	if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
		log.Fatal(err)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
